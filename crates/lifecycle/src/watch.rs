//! Watching: what is served follows the files, the index and `host.toml`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

use crate::manager::LifecycleManager;

/// A change is looked at when nothing has happened for this long: files are written in pieces, and builds replace several.
const QUIET: Duration = Duration::from_millis(100);

/// Or when so much time has passed, where something happens all the time.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
#[error("files cannot be watched: {0}\nhint: serve without `--watch`, and restart after a change")]
pub struct WatchError(#[from] notify::Error);

/// Swaps what has changed, as long as it lives.
#[derive(Debug)]
pub struct Watch {
    follow: Follow,
    manager: Arc<LifecycleManager>,
    watcher: RecommendedWatcher,
    /// What was watched at the last look: folders, and whether with all that is below.
    watched: BTreeSet<(PathBuf, bool)>,
    events: mpsc::UnboundedReceiver<()>,
}

/// How far a watch goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// Everything: what is served, and what it may use.
    Everything,
    /// What was granted, and secrets. The bytes that are served stay.
    Grants,
}

impl LifecycleManager {
    /// Starts to watch. What happens from now on is seen when the watch runs.
    pub fn watch(self: &Arc<Self>, follow: Follow) -> Result<Watch, WatchError> {
        let (sender, events) = mpsc::unbounded_channel();
        let home = self.config.home.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // An error may have hidden a change.
            if event.is_ok_and(|event| !concerns(&event, home.as_deref())) {
                return;
            }
            // Nobody listens any more when the server ends.
            let _ = sender.send(());
        })?;
        let mut watch = Watch {
            follow,
            manager: Arc::clone(self),
            watcher,
            watched: BTreeSet::new(),
            events,
        };
        watch.look()?;
        Ok(watch)
    }
}

impl Watch {
    pub async fn run(mut self) {
        while self.events.recv().await.is_some() {
            let latest = Instant::now() + PATIENCE;
            while Instant::now() < latest
                && tokio::time::timeout(QUIET, self.events.recv())
                    .await
                    .is_ok_and(|event| event.is_some())
            {}
            // First the folders, then what is in them: what happens in one before it is watched is seen now, and after that it is heard of.
            // What is served now may be in folders that were not watched yet.
            loop {
                if let Err(error) = self.look() {
                    tracing::warn!("{error}");
                }
                let manager = Arc::clone(&self.manager);
                let follow = self.follow;
                let refresh = move || match follow {
                    Follow::Everything => manager.refresh(),
                    Follow::Grants => manager.refresh_grants(),
                };
                if tokio::task::spawn_blocking(refresh).await.is_err() {
                    return;
                }
                if self.folders().is_subset(&self.watched) {
                    break;
                }
            }
        }
    }

    /// Watches the folders of everything that is served, all of them anew: a folder may be another one of the same name by now, which
    /// nobody hears of.
    fn look(&mut self) -> Result<(), WatchError> {
        let folders = self.folders();
        for (folder, _) in self.watched.difference(&folders) {
            // If it is gone, it is not watched any more anyway.
            let _ = self.watcher.unwatch(folder);
        }
        self.watched.clear();
        for (folder, is_deep) in folders {
            let mode = if is_deep {
                RecursiveMode::Recursive
            } else {
                RecursiveMode::NonRecursive
            };
            match self.watcher.watch(&folder, mode) {
                Ok(()) => {
                    self.watched.insert((folder, is_deep));
                }
                // It went away just now. The next look is at the one above it.
                Err(_) if !folder.is_dir() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The folders of everything that is served, and whether what is below counts. A file is often replaced by another of its name, so it
    /// is never watched itself, and a folder that is missing is seen from the one above it.
    fn folders(&self) -> BTreeSet<(PathBuf, bool)> {
        let mut folders = BTreeSet::new();
        let watched = match self.follow {
            Follow::Everything => self.manager.watched(),
            Follow::Grants => self.manager.watched_grants(),
        };
        for path in watched {
            let folder = if path.is_dir() {
                path.as_path()
            } else {
                path.parent().unwrap_or(&path)
            };
            let nearest = folder.ancestors().find(|folder| folder.is_dir());
            folders.extend(nearest.map(|folder| (folder.to_owned(), false)));
            let wits = [folder.join("wit"), folder.join("../wit")];
            folders.extend(wits.into_iter().filter(|wit| wit.is_dir()).map(|wit| (wit, true)));
        }
        folders
    }
}

/// Whether an event can have changed what is served: reading does not, and of the store only three files say what that is.
fn concerns(event: &Event, home: Option<&Path>) -> bool {
    let is_ours = |path: &PathBuf| match path.parent() {
        Some(parent) if Some(parent) == home => {
            let name = path.file_name().and_then(|name| name.to_str());
            matches!(name, Some("components.toml" | "host.toml" | "secrets.toml"))
        }
        _ => true,
    };
    !event.kind.is_access() && event.paths.iter().any(is_ours)
}
