//! Instances that wait for a call: the one that all calls of a component share, or those that were made ahead of the next calls.
//!
//! Some components take much longer to instantiate than to call, those with an interpreter inside of them. While nobody waits, instances
//! are made for the calls that come next. Each serves one call and is thrown away like any other, so nothing is shared. Nothing of a
//! guest runs outside of a call either: only where making an instance runs none of its code is one made ahead.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::Store;
use wasmtime::component::Instance;

use crate::client::Nobody;
use crate::code::Program;
use crate::confinement::{Confinement, Sharing};
use crate::guest::{Guest, Watched};
use crate::invoke;

/// Instances that take longer than this to make are worth having before they are needed.
const SLOW: Duration = Duration::from_micros(100);

/// How many have to be made before that is known: the first one takes longer than all others, and any one may have been held up.
const ENOUGH: u32 = 3;

/// How many are made ahead for one component: a few calls that come together find one each.
const EACH: usize = 2;

/// How many there are of all components.
pub(crate) const MAX_AHEAD: u32 = 16;

/// What their memories may have, all together. What is there need not have been touched.
const MAX_MEMORY: usize = 512 << 20;

/// How long one waits for its call.
const PATIENCE: Duration = Duration::from_secs(60);

/// An instance in its store.
pub(crate) struct Ready {
    pub(crate) store: Store<Guest>,
    pub(crate) instance: Instance,
    /// What it takes of the room for what is made ahead.
    pub(crate) room: Option<OwnedSemaphorePermit>,
    since: Instant,
}

impl Ready {
    pub(crate) fn new(store: Store<Guest>, instance: Instance, room: Option<OwnedSemaphorePermit>) -> Self {
        Self {
            store,
            instance,
            room,
            since: Instant::now(),
        }
    }
}

/// The instances of one program.
pub(crate) struct Waiting {
    ready: Mutex<Vec<Ready>>,
    /// How many were made, and the shortest time that this took, in microseconds.
    made: AtomicU32,
    fastest: AtomicU64,
    is_being_made: AtomicBool,
    /// Somebody looks for those that nobody came for.
    is_watched: AtomicBool,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            ready: Mutex::default(),
            made: AtomicU32::new(0),
            fastest: AtomicU64::new(u64::MAX),
            is_being_made: AtomicBool::new(false),
            is_watched: AtomicBool::new(false),
        }
    }
}

impl Waiting {
    fn ready(&self) -> MutexGuard<'_, Vec<Ready>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that was made within these very walls. Others are of no use any more.
    pub(crate) fn take(&self, walls: &Arc<Confinement>) -> Option<Ready> {
        let mut ready = self.ready();
        ready.retain(|one| Arc::ptr_eq(&one.store.data().confinement, walls));
        ready.pop()
    }

    pub(crate) fn put(&self, ready: Ready) {
        self.ready().push(ready);
    }

    /// Notes how long it took to make an instance.
    pub(crate) fn took(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.fastest.fetch_min(micros, Ordering::Relaxed);
        if self.made.load(Ordering::Relaxed) < ENOUGH {
            self.made.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn is_slow(&self) -> bool {
        let fastest = Duration::from_micros(self.fastest.load(Ordering::Relaxed));
        self.made.load(Ordering::Relaxed) >= ENOUGH && fastest > SLOW
    }

    /// Lets go of those that nobody came for. False if there are no others.
    fn forget_old(&self) -> bool {
        let mut ready = self.ready();
        ready.retain(|one| one.since.elapsed() < PATIENCE);
        // While nothing can be put: whoever puts the next one sees that it has to be watched.
        self.is_watched.store(!ready.is_empty(), Ordering::Relaxed);
        !ready.is_empty()
    }
}

/// The room for what is made ahead, in parts of which there is one for each instance.
pub(crate) fn room() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MAX_AHEAD as usize))
}

/// How many parts of the room an instance with so much memory takes.
fn parts(memory: usize) -> usize {
    memory.div_ceil(MAX_MEMORY / MAX_AHEAD as usize).max(1)
}

/// Makes instances for the next calls, if they are worth it and there is room.
pub(crate) fn make_ahead(
    runtime: &tokio::runtime::Handle,
    program: &Arc<Program>,
    walls: &Arc<Confinement>,
    room: &Arc<Semaphore>,
) {
    if program.waiting.is_slow() && walls.sharing == Sharing::Fresh {
        make(runtime, program, walls, room);
    }
}

fn make(runtime: &tokio::runtime::Handle, program: &Arc<Program>, walls: &Arc<Confinement>, room: &Arc<Semaphore>) {
    let waiting = &program.waiting;
    if waiting.ready().len() >= EACH || waiting.is_being_made.swap(true, Ordering::Relaxed) {
        return;
    }
    let (program, walls, room) = (Arc::clone(program), Arc::clone(walls), Arc::clone(room));
    runtime.spawn(async move {
        while program.waiting.ready().len() < EACH {
            let Some(ready) = made(&program, &walls, &room).await else {
                break;
            };
            program.waiting.put(ready);
        }
        program.waiting.is_being_made.store(false, Ordering::Relaxed);
        if program.waiting.is_watched.swap(true, Ordering::Relaxed) {
            return;
        }
        let watched = Arc::downgrade(&program);
        drop((program, walls));
        loop {
            tokio::time::sleep(PATIENCE).await;
            if !watched.upgrade().is_some_and(|program| program.waiting.forget_old()) {
                return;
            }
        }
    });
}

/// An instance, unless there is no room for it. What is wrong with it will be told to whoever calls.
async fn made(program: &Program, walls: &Arc<Confinement>, room: &Arc<Semaphore>) -> Option<Ready> {
    let mut taken = Arc::clone(room).try_acquire_owned().ok()?;
    let guest = Guest::new(walls, Arc::new(Nobody)).ok()?;
    let mut store = invoke::store(program.engine(), guest);
    let instance = program.instantiate(&mut store).await.ok()?;
    let more = parts(store.data().watch().usage.used()) - 1;
    if more > 0 {
        let more = u32::try_from(more).ok()?;
        taken.merge(Arc::clone(room).try_acquire_many_owned(more).ok()?);
    }
    Some(Ready::new(store, instance, Some(taken)))
}

#[cfg(test)]
mod tests {
    use component2json::Returned;
    use policy::{Grants, Limits, Secrets};
    use wasmtime::component::Val;

    use super::*;
    use crate::network::Network;
    use crate::{CodeKind, Sandbox};

    /// A component that counts its calls, in steps of this.
    fn counter(sandbox: &Sandbox, step: u32) -> Arc<Program> {
        let text = format!(
            r#"(component
                (core module $m
                    (global $count (mut i32) (i32.const 0))
                    (func (export "count") (result i32)
                        (global.set $count (i32.add (global.get $count) (i32.const {step})))
                        (global.get $count)))
                (core instance $i (instantiate $m))
                (func (export "count") (result u32) (canon lift (core func $i "count"))))"#
        );
        let bytes = wat::parse_str(text).unwrap();
        let (exports, _) = component2json::read_exports(&bytes, None).unwrap();
        let compiled = sandbox.compile(&bytes, CodeKind::Component { concurrency: false }).unwrap();
        Arc::new(sandbox.link(&compiled, &exports).unwrap())
    }

    fn walls(sharing: Sharing) -> Arc<Confinement> {
        let (grants, secrets, network) = (Grants::default(), Secrets::default(), Arc::new(Network::none()));
        Arc::new(Confinement::new("", grants, Limits::default(), secrets, sharing, network))
    }

    async fn count(sandbox: &Sandbox, program: &Arc<Program>, walls: &Arc<Confinement>) -> u32 {
        let finished = sandbox.call(program, 0, vec![], walls, Arc::new(Nobody)).await;
        match finished.result.unwrap() {
            Some(Returned::Val(Val::U32(count))) => count,
            other => panic!("{other:?}"),
        }
    }

    async fn wait_until_ready(program: &Program) {
        while program.waiting.ready().len() < EACH {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn what_is_made_ahead_serves_one_call_within_its_own_walls() {
        let sandbox = Sandbox::new(Limits::default()).unwrap();
        let program = counter(&sandbox, 1);
        let (ours, others) = (walls(Sharing::Fresh), walls(Sharing::Fresh));
        assert_eq!(count(&sandbox, &program, &ours).await, 1);
        for _ in 0..5 {
            make(&tokio::runtime::Handle::current(), &program, &ours, &sandbox.ahead);
            wait_until_ready(&program).await;
            assert_eq!(count(&sandbox, &program, &ours).await, 1);
        }
        assert!(program.waiting.take(&others).is_none());
        assert!(program.waiting.ready().is_empty(), "nobody can use them any more");
        let parts_left = async {
            while sandbox.ahead.available_permits() < MAX_AHEAD as usize {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        parts_left.await;
    }

    #[tokio::test]
    async fn a_shared_instance_remembers_and_belongs_to_its_program() {
        let sandbox = Sandbox::new(Limits::default()).unwrap();
        let walls = walls(Sharing::Shared);
        let old = counter(&sandbox, 1);
        assert_eq!(count(&sandbox, &old, &walls).await, 1);
        assert_eq!(count(&sandbox, &old, &walls).await, 2);
        // New bytes of the same component, with the same grants.
        let new = counter(&sandbox, 10);
        assert_eq!(count(&sandbox, &new, &walls).await, 10);
        drop((old, new));
        assert_eq!(Arc::strong_count(&walls), 1, "what waits goes with its program");
    }

    #[test]
    fn the_fastest_of_some_tells_whether_they_are_slow() {
        let waiting = Waiting::default();
        for _ in 0..ENOUGH {
            assert!(!waiting.is_slow(), "it is not known yet");
            waiting.took(SLOW * 2);
        }
        assert!(waiting.is_slow());
        waiting.took(SLOW / 2);
        waiting.took(SLOW * 2);
        assert!(!waiting.is_slow(), "only some were held up");
    }

    #[test]
    fn large_memories_take_more_of_the_room() {
        let part = MAX_MEMORY / MAX_AHEAD as usize;
        for (memory, taken) in [(0, 1), (1, 1), (part, 1), (part + 1, 2), (MAX_MEMORY, 16)] {
            assert_eq!(parts(memory), taken, "{memory}");
        }
    }
}
