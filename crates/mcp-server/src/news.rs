//! Tells clients what is not as it was: the lists of tools, prompts and resources, and what is in a resource.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lifecycle::{Change, News};
use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionSink};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

/// Changes that follow one another so closely are told as one.
const BETWEEN_NEWS: Duration = Duration::from_millis(50);

/// What somebody knows who asks now, and what comes after that.
pub(crate) fn known(mut news: watch::Receiver<News>) -> (News, watch::Receiver<News>) {
    let now = *news.borrow_and_update();
    (now, news)
}

/// Who is told of changes.
pub(crate) enum Audience {
    /// A client with a session, and the resources that it subscribed to.
    Peer(Peer<RoleServer>, Arc<Mutex<HashSet<String>>>),
    /// A stream that a client of the stateless era listens to.
    Stream(SubscriptionSink),
}

impl Audience {
    /// Tells of a change, unless nobody wants to hear of it. False when nobody is there any more.
    async fn tell(&self, change: &Change) -> bool {
        match (self, change) {
            (Self::Peer(peer, _), Change::Tools) => peer.notify_tool_list_changed().await.is_ok(),
            (Self::Peer(peer, _), Change::Prompts) => peer.notify_prompt_list_changed().await.is_ok(),
            (Self::Peer(peer, _), Change::Resources) => peer.notify_resource_list_changed().await.is_ok(),
            (Self::Peer(peer, subscriptions), Change::Resource(uri)) => {
                let wants = subscriptions.lock().unwrap_or_else(PoisonError::into_inner).contains(uri);
                !wants
                    || peer
                        .notify_resource_updated(ResourceUpdatedNotificationParam::new(uri))
                        .await
                        .is_ok()
            }
            (Self::Stream(sink), change) => {
                let accepted = sink.accepted();
                match change {
                    Change::Tools => accepted.tools_list_changed != Some(true) || sink.notify_tool_list_changed().await.is_ok(),
                    Change::Prompts => {
                        accepted.prompts_list_changed != Some(true) || sink.notify_prompt_list_changed().await.is_ok()
                    }
                    Change::Resources => {
                        accepted.resources_list_changed != Some(true) || sink.notify_resource_list_changed().await.is_ok()
                    }
                    Change::Resource(uri) => {
                        let subscribed = accepted.resource_subscriptions.iter().flatten().any(|one| one == uri);
                        !subscribed || sink.notify_resource_updated(uri).await.is_ok()
                    }
                }
            }
        }
    }

    /// A change of every resource that somebody wants to know of.
    fn all_resources(&self) -> Vec<Change> {
        let uris: Vec<String> = match self {
            Self::Peer(_, subscriptions) => {
                let subscriptions = subscriptions.lock().unwrap_or_else(PoisonError::into_inner);
                subscriptions.iter().cloned().collect()
            }
            Self::Stream(sink) => sink.accepted().resource_subscriptions.iter().flatten().cloned().collect(),
        };
        uris.into_iter().map(Change::Resource).collect()
    }

    /// Tells of all changes, as long as somebody is there. Those that come while nobody reads are told as one.
    pub(crate) async fn follow(self, news: (News, watch::Receiver<News>), mut updates: broadcast::Receiver<Arc<str>>) {
        let (mut told, mut news) = news;
        loop {
            let changes: Vec<Change> = tokio::select! {
                changed = news.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    tokio::time::sleep(BETWEEN_NEWS).await;
                    let now = *news.borrow_and_update();
                    let before = std::mem::replace(&mut told, now);
                    let all = [
                        (now.tools != before.tools, Change::Tools),
                        (now.prompts != before.prompts, Change::Prompts),
                        (now.resources != before.resources, Change::Resources),
                    ];
                    all.into_iter().filter_map(|(is_new, change)| is_new.then_some(change)).collect()
                }
                updated = updates.recv() => match updated {
                    Ok(uri) => vec![Change::Resource(uri.to_string())],
                    // It could not keep up. Which ones it missed nobody knows, so it may have been any.
                    Err(RecvError::Lagged(_)) => self.all_resources(),
                    Err(RecvError::Closed) => return,
                },
            };
            for change in &changes {
                if !self.tell(change).await {
                    return;
                }
            }
        }
    }
}
