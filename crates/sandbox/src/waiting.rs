//! Instances that wait for a call: the one that all calls of a component share, or those that were made ahead of the next calls.
//!
//! To make an instance and to take it apart takes longer than most calls do, and much longer where there is an interpreter inside. Both
//! are done while nobody waits: before the next call comes, and after the answer of the last has gone. Each instance serves one call and
//! is thrown away like any other, so nothing is shared. Nothing of a guest runs outside of a call either: only where making an instance
//! runs none of its code is one made ahead.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::yield_now;
use wasmtime::Store;
use wasmtime::component::Instance;

use crate::client::Nobody;
use crate::code::Program;
use crate::confinement::{Confinement, Sharing};
use crate::guest::{Guest, Watched};
use crate::invoke;
use crate::threads;

/// Instances that take longer than this to make are made where guests run, so that nobody waits for that either.
const SLOW: Duration = Duration::from_micros(100);

/// How many have to be made before that is known: the first one takes longer than all others, and any one may have been held up.
const ENOUGH: u32 = 3;

/// How many are made ahead for one component where they are slow to make: a few calls that come together find one each.
const EACH: usize = 2;

/// How many there are of all components, with those that are yet to be taken apart.
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

/// An instance whose call has ended on the thread that asked for it, until there is time to take it apart.
pub(crate) struct Used {
    // Dropped in this order: while there is a place in the room, there is one in the pool.
    _store: Store<Guest>,
    _room: OwnedSemaphorePermit,
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

    /// Lets go of those that nobody came for. False if there are no others. What calls share takes no room, and stays.
    fn forget_old(&self) -> bool {
        let mut ready = self.ready();
        ready.retain(|one| one.room.is_none() || one.since.elapsed() < PATIENCE);
        let has_more = ready.iter().any(|one| one.room.is_some());
        // While nothing can be put: whoever puts the next one sees that it has to be watched.
        self.is_watched.store(has_more, Ordering::Relaxed);
        has_more
    }
}

thread_local! {
    /// What the last call that was asked for on this thread left behind. No other thread has it in its caches. A thread has one runtime, which
    /// ends on it, and with it what is here.
    static USED: RefCell<Option<Used>> = const { RefCell::new(None) };
    /// Somebody will come and tidy up.
    static IS_EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Puts aside what a call left behind. Gives what was there.
fn put_aside(used: Option<Used>) -> Option<Used> {
    USED.with(|aside| aside.replace(used))
}

/// Whoever tidies up a thread. Does so when it is dropped, and therefore also if its turn never comes.
struct Tidier;

impl Drop for Tidier {
    fn drop(&mut self) {
        IS_EXPECTED.set(false);
        drop(put_aside(None));
    }
}

/// What is done before and after the calls of all programs.
pub(crate) struct Backstage {
    /// Room for what waits to be used or to be taken apart, in parts of which there is one for each instance.
    room: Arc<Semaphore>,
}

impl Default for Backstage {
    fn default() -> Self {
        Self {
            room: Arc::new(Semaphore::new(MAX_AHEAD as usize)),
        }
    }
}

impl std::fmt::Debug for Backstage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backstage").finish_non_exhaustive()
    }
}

impl Backstage {
    /// What is left of a call. It is taken apart later if the thread that asked has an answer to write first; else now, or beside the
    /// answer if it took long to make. Runs where the call ended.
    pub(crate) fn leave(&self, program: &Program, mut store: Store<Guest>, room: Option<OwnedSemaphorePermit>) -> Option<Used> {
        if threads::is_asking() && parts(&store) == 1 {
            // Whoever called is of no interest any more.
            store.data_mut().client = Arc::new(Nobody);
            let room = room.or_else(|| Arc::clone(&self.room).try_acquire_owned().ok())?;
            return Some(Used {
                _store: store,
                _room: room,
            });
        }
        if let Some(room) = room.filter(|_| program.waiting.is_slow()) {
            tokio::spawn(async move {
                drop(store);
                drop(room);
            });
        }
        None
    }

    /// Tidies up after a call, and gets ready for the next one, once the answer is written: where guests run, if that takes long; else on this
    /// very thread. Of several components that it called until then, one is got ready for.
    pub(crate) fn after_call(
        self: &Arc<Self>,
        guests: &Handle,
        program: &Arc<Program>,
        walls: &Arc<Confinement>,
        used: Option<Used>,
    ) {
        let is_slow = program.waiting.is_slow() && walls.sharing == Sharing::Fresh;
        if used.is_none() && !is_slow {
            return;
        }
        // On threads that share their work the rest of the answer may be somewhere else already.
        let here = Handle::try_current().ok();
        let Some(here) = here.filter(|here| here.runtime_flavor() == RuntimeFlavor::CurrentThread) else {
            if is_slow {
                self.make_ahead(guests, program, walls);
            }
            return;
        };
        if used.is_some() {
            // What the call before left behind goes now, if calls follow each other so fast that nobody came for it.
            drop(put_aside(used));
        }
        let tidier = (!IS_EXPECTED.replace(true)).then_some(Tidier);
        if tidier.is_none() && !is_slow {
            return;
        }
        let (backstage, guests) = (Arc::clone(self), guests.clone());
        let (program, walls) = (Arc::clone(program), Arc::clone(walls));
        here.spawn(async move {
            // Whoever writes the answer has to have a turn first.
            yield_now().await;
            drop(tidier);
            if is_slow {
                // Any earlier, and whoever makes them would have the core that the client is about to need.
                backstage.make_ahead(&guests, &program, &walls);
            } else {
                backstage.get_ready(&guests, &program, &walls).await;
            }
        });
    }

    /// Makes an instance for the next call, if there is none.
    async fn get_ready(&self, guests: &Handle, program: &Arc<Program>, walls: &Arc<Confinement>) {
        // One that waits should hold nothing open. Guests with files do what takes longer than to make an instance.
        if program.starts_silently()
            && walls.directories.are_none()
            && program.waiting.ready().is_empty()
            && let Some(ready) = self.made(program, walls).await
        {
            program.waiting.put(ready);
            watch(guests, program);
        }
    }

    /// Makes as many instances for the next calls as there should be, if there is room.
    fn make_ahead(self: &Arc<Self>, guests: &Handle, program: &Arc<Program>, walls: &Arc<Confinement>) {
        let waiting = &program.waiting;
        if waiting.ready().len() >= EACH || waiting.is_being_made.swap(true, Ordering::Relaxed) {
            return;
        }
        let (backstage, handle) = (Arc::clone(self), guests.clone());
        let (program, walls) = (Arc::clone(program), Arc::clone(walls));
        guests.spawn(async move {
            while program.waiting.ready().len() < EACH {
                let Some(ready) = backstage.made(&program, &walls).await else {
                    break;
                };
                program.waiting.put(ready);
            }
            program.waiting.is_being_made.store(false, Ordering::Relaxed);
            watch(&handle, &program);
        });
    }

    /// An instance, unless there is no room for it. What is wrong with it will be told to whoever calls.
    async fn made(&self, program: &Program, walls: &Arc<Confinement>) -> Option<Ready> {
        let mut taken = Arc::clone(&self.room).try_acquire_owned().ok()?;
        let guest = Guest::new(walls, Arc::new(Nobody)).ok()?;
        let mut store = invoke::store(program.engine(), guest);
        let instance = program.instantiate(&mut store).await.ok()?;
        let more = parts(&store) - 1;
        if more > 0 {
            taken.merge(Arc::clone(&self.room).try_acquire_many_owned(more).ok()?);
        }
        Some(Ready::new(store, instance, Some(taken)))
    }
}

/// How many parts of the room an instance takes.
fn parts(store: &Store<Guest>) -> u32 {
    parts_for(store.data().watch().usage.used())
}

/// More of them for one with more memory.
fn parts_for(memory: usize) -> u32 {
    let parts = memory.div_ceil(MAX_MEMORY / MAX_AHEAD as usize).max(1);
    u32::try_from(parts).unwrap_or(u32::MAX)
}

/// Sees to it that somebody looks for the instances of a program that nobody came for.
fn watch(guests: &Handle, program: &Arc<Program>) {
    if program.waiting.is_watched.swap(true, Ordering::Relaxed) {
        return;
    }
    let watched = Arc::downgrade(program);
    guests.spawn(async move {
        loop {
            tokio::time::sleep(PATIENCE).await;
            if !watched.upgrade().is_some_and(|program| program.waiting.forget_old()) {
                return;
            }
        }
    });
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

    /// Lets others do something meanwhile.
    async fn a_moment() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    #[tokio::test]
    async fn what_is_made_ahead_serves_one_call_within_its_own_walls() {
        let sandbox = Sandbox::new(Limits::default()).unwrap();
        let program = counter(&sandbox, 1);
        let (ours, others) = (walls(Sharing::Fresh), walls(Sharing::Fresh));
        assert_eq!(count(&sandbox, &program, &ours).await, 1);
        for _ in 0..5 {
            sandbox.backstage.make_ahead(&Handle::current(), &program, &ours);
            while program.waiting.ready().len() < EACH {
                a_moment().await;
            }
            assert_eq!(count(&sandbox, &program, &ours).await, 1);
        }
        // What is made for the next call may still be on its way.
        while sandbox.backstage.room.available_permits() < MAX_AHEAD as usize {
            assert!(program.waiting.take(&others).is_none());
            assert!(program.waiting.ready().is_empty(), "nobody can use them any more");
            a_moment().await;
        }
    }

    #[tokio::test]
    async fn a_call_leaves_nothing_behind_but_an_instance_for_the_next() {
        let sandbox = Sandbox::new(Limits::default()).unwrap();
        let (program, walls) = (counter(&sandbox, 1), walls(Sharing::Fresh));
        let room_left = || sandbox.backstage.room.available_permits();
        // On a busy machine a call may be interrupted, and is taken apart where it ends.
        while program.waiting.ready().is_empty() {
            for _ in 0..10 {
                assert_eq!(count(&sandbox, &program, &walls).await, 1);
                assert!(
                    room_left() >= MAX_AHEAD as usize - 1 - EACH,
                    "what a call leaves behind, the next one takes away"
                );
            }
            a_moment().await;
        }
        while USED.with(|aside| aside.borrow().is_some()) {
            a_moment().await;
        }
        assert_eq!(room_left(), MAX_AHEAD as usize - program.waiting.ready().len());
    }

    #[tokio::test]
    async fn what_is_slow_to_make_is_made_once_the_answer_is_written() {
        let sandbox = Sandbox::new(Limits::default()).unwrap();
        let (program, walls) = (counter(&sandbox, 1), walls(Sharing::Fresh));
        for _ in 0..ENOUGH {
            program.waiting.took(SLOW * 2);
        }
        sandbox.backstage.after_call(&Handle::current(), &program, &walls, None);
        assert!(
            !program.waiting.is_being_made.load(Ordering::Relaxed),
            "the answer comes first"
        );
        while program.waiting.ready().len() < EACH {
            a_moment().await;
        }
        assert_eq!(count(&sandbox, &program, &walls).await, 1);
    }

    #[tokio::test]
    async fn without_room_an_instance_is_taken_apart_at_once() {
        let sandbox = Sandbox::new(Limits::default()).unwrap();
        let (program, walls) = (counter(&sandbox, 1), walls(Sharing::Fresh));
        let room = &sandbox.backstage.room;
        let all = Arc::clone(room).try_acquire_many_owned(MAX_AHEAD).unwrap();
        for _ in 0..10 {
            assert_eq!(count(&sandbox, &program, &walls).await, 1);
            assert!(USED.with(|aside| aside.borrow().is_none()));
            a_moment().await;
            assert!(program.waiting.ready().is_empty());
        }
        drop(all);
        assert_eq!(room.available_permits(), MAX_AHEAD as usize);
    }

    #[tokio::test]
    async fn a_shared_instance_is_not_forgotten() {
        let sandbox = Sandbox::new(Limits::default()).unwrap();
        let program = counter(&sandbox, 1);
        let long_ago = Instant::now().checked_sub(PATIENCE).unwrap();
        let put = |ready: Ready| {
            program.waiting.put(Ready {
                since: long_ago,
                ..ready
            })
        };
        let made = sandbox.backstage.made(&program, &walls(Sharing::Fresh)).await.unwrap();
        put(made);
        let shared = sandbox.backstage.made(&program, &walls(Sharing::Shared)).await.unwrap();
        put(Ready { room: None, ..shared });
        assert!(!program.waiting.forget_old(), "only what was made ahead is looked for");
        assert_eq!(program.waiting.ready().len(), 1);
        assert!(program.waiting.ready().iter().all(|one| one.room.is_none()));
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
            assert_eq!(parts_for(memory), taken, "{memory}");
        }
    }
}
