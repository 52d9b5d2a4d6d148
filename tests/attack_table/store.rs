//! Rows 27–30: damage and forgery in the store, changes all at once, kills in the middle of a change, and disks that are full.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use crate::scene::{Scene, component, files};
use crate::support::{Server, wait_until};
use crate::unharmed::{GOOD, Held, Host, assert_good};

/// A store with the good component in it, compiled.
fn added() -> Scene {
    let scene = Scene::new();
    scene.write("good.wat", GOOD);
    scene.do_well(&["add", "good.wat"]);
    assert_eq!(scene.do_well(&["call", "good", "add", "a=2", "b=40"]).stdout, "42\n");
    scene
}

fn serve(scene: &Scene) -> Host {
    Host::start(&mut scene.host(&scene.home(), &["serve"]))
}

/// The only file of this kind in the cache.
fn cached(scene: &Scene, extension: &str) -> PathBuf {
    let cache = scene.home().join("cache");
    let is_meant = |path: &PathBuf| path.extension().is_some_and(|found| found == extension);
    let found: Vec<PathBuf> = files(&cache).into_iter().filter(is_meant).collect();
    let [path] = &found[..] else {
        panic!("one file of that kind, and not {found:?}")
    };
    cache.join(path)
}

/// Puts bytes where a file is. Whoever has the old one open keeps it.
fn replace(path: &Path, bytes: &[u8]) {
    let beside = path.with_extension("new");
    crate::support::write(&beside, bytes);
    fs::set_permissions(&beside, fs::metadata(path).unwrap().permissions()).unwrap();
    fs::rename(beside, path).unwrap();
}

#[test]
fn row_27_forged_code_and_metadata() {
    let scene = added();
    let [code, metadata] = ["cwasm", "json"].map(|extension| cached(&scene, extension));
    let tools = scene.do_well(&["tools", "good"]).stdout;
    let originals = [&code, &metadata].map(|path| fs::read(path).unwrap());
    // What somebody would like to have run in place of it: good code, with a good seal, of something else.
    let other = Scene::new();
    other.write("good.wat", &GOOD.replace("i32.add", "i32.mul"));
    other.do_well(&["add", "good.wat"]);
    let foreign = ["cwasm", "json"].map(|extension| fs::read(cached(&other, extension)).unwrap());

    let mut host = serve(&scene);
    host.survives(|_| {
        for (path, (good, foreign)) in [&code, &metadata].into_iter().zip(originals.iter().zip(&foreign)) {
            let flipped = (0..good.len()).step_by(good.len() / 12).map(|at| {
                let mut bytes = good.clone();
                bytes[at] ^= 0x10;
                bytes
            });
            let cut = [0, 1, 64, good.len() / 2, good.len() - 1].map(|length| good[..length].to_vec());
            let longer = [good.as_slice(), b"\0"].concat();
            for forged in flipped.chain(cut).chain([longer, foreign.clone()]) {
                replace(path, &forged);
                let called = scene.do_well(&["call", "good", "add", "a=2", "b=40"]);
                assert_eq!(called.stdout, "42\n", "{}: {}", path.display(), called.stderr);
                if *path == code {
                    assert!(called.stderr.contains("it is compiled again"), "{}", called.stderr);
                    assert_eq!(fs::read(path).unwrap().len(), good.len());
                }
                assert_eq!(scene.do_well(&["tools", "good"]).stdout, tools);
            }
            replace(path, good);
        }
        // Under the name of another version of the engine it is nobody's.
        let name = code.file_name().unwrap().to_str().unwrap();
        let elsewhere = code.with_file_name(name.replace(['0', '1', '2'], "3"));
        fs::rename(&code, &elsewhere).unwrap();
        assert_eq!(scene.do_well(&["call", "good", "add", "a=2", "b=40"]).stdout, "42\n");
        fs::remove_file(elsewhere).unwrap();
    });
    host.close_well();

    // A directory that others can write to is not trusted with code.
    let cache = scene.home().join("cache");
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
    let refused = scene.run(&scene.home(), &["serve"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    let told = "error: the store `";
    assert!(
        refused.stderr.contains(told) && refused.stderr.contains("\nhint: `chmod 700 "),
        "{}",
        refused.stderr
    );
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o700)).unwrap();
    let mut host = serve(&scene);
    assert_good(&mut host.server);
    host.close_well();
}

/// Xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// A server whose agent loads from a folder, and what is there as far as the test knows.
struct Managed {
    scene: Scene,
    server: Server,
    random: Random,
    /// The version of each component that is loaded.
    loaded: [Option<u32>; Self::COMPONENTS],
    version: u32,
}

/// What was asked for and not answered yet.
enum Asked {
    Call(usize),
    Load(usize),
    Unload(usize),
}

impl Managed {
    const COMPONENTS: usize = 4;
    /// Operations that are under way at a time.
    const AT_ONCE: usize = 20;

    fn new(seed: u64) -> Self {
        let scene = added();
        fs::create_dir(scene.folder().join("allowed")).unwrap();
        let folder = scene.folder().canonicalize().unwrap();
        scene.write(
            "home/host.toml",
            &format!("[agent]\nsources = [{:?}]\n", folder.join("allowed/*")),
        );
        let mut server = Server::start(&mut scene.host(&scene.home(), &["serve", "--allow-agent-admin"]));
        server.initialize();
        Self {
            scene,
            server,
            random: Random(seed),
            loaded: [None; Self::COMPONENTS],
            version: 0,
        }
    }

    fn source(&self, name: &str) -> PathBuf {
        self.scene
            .folder()
            .canonicalize()
            .unwrap()
            .join(format!("allowed/{name}.wat"))
    }

    fn load(&mut self, number: usize) -> u64 {
        self.version += 1;
        let name = format!("c{number}");
        self.scene
            .write(&format!("allowed/{name}.wat"), &component(&name, self.version));
        let source = self.source(&name);
        self.server.start_call("load_component", &json!({"source": source}))
    }

    fn unload(&mut self, number: usize) -> u64 {
        self.server
            .start_call("unload_component", &json!({"id": format!("c{number}")}))
    }

    /// The next answer. That tools changed is told in between.
    fn receive(&mut self) -> Value {
        loop {
            let message = self.server.receive();
            if message.get("id").is_some() {
                return message;
            }
        }
    }

    /// A batch of operations, all sent before one is answered. Each component is changed at most once in it.
    fn batch(&mut self) {
        let before = self.loaded;
        let mut after = before;
        let mut asked = HashMap::new();
        let mut changed = [false; Self::COMPONENTS];
        for _ in 0..Self::AT_ONCE {
            let number = self.random.below(Self::COMPONENTS);
            let (id, what) = if self.random.below(4) != 0 || changed[number] {
                let call = self.server.start_call(&format!("c{number}"), &json!({}));
                (call, Asked::Call(number))
            } else {
                changed[number] = true;
                if before[number].is_some() {
                    after[number] = None;
                    (self.unload(number), Asked::Unload(number))
                } else {
                    let id = self.load(number);
                    after[number] = Some(self.version);
                    (id, Asked::Load(number))
                }
            };
            asked.insert(id, what);
        }
        while !asked.is_empty() {
            let answer = self.receive();
            let what = asked.remove(&answer["id"].as_u64().unwrap()).expect("one answer to each");
            let result = &answer["result"];
            match what {
                Asked::Call(number) => {
                    let is_gone = answer["error"]["code"] == -32602;
                    assert!(is_gone || result["isError"] == false, "{answer}");
                    let seen = result["structuredContent"]["result"].as_u64();
                    let seen = seen.map(|version| u32::try_from(version).unwrap());
                    assert!(seen == before[number] || seen == after[number], "c{number}: {answer}");
                }
                Asked::Load(number) => {
                    assert_eq!(
                        result["structuredContent"]["result"]["outcome"], "added",
                        "c{number}: {answer}"
                    )
                }
                Asked::Unload(number) => {
                    assert_eq!(
                        result["structuredContent"]["result"]["outcome"], "removed",
                        "c{number}: {answer}"
                    );
                }
            }
        }
        self.loaded = after;
    }

    /// The result of a call while no other is under way.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.server.start_call(tool, arguments);
        let mut answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer["result"].take()
    }

    fn unload_all(&mut self) {
        for number in 0..Self::COMPONENTS {
            if self.loaded[number].take().is_some() {
                self.call("unload_component", &json!({"id": format!("c{number}")}));
            }
        }
    }
}

/// Set `ATTACK_SEED` to what a failure shows, to do the same again.
#[test]
fn row_28_concurrent_load_unload_and_call() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = std::env::var("ATTACK_SEED").map_or(now.as_secs() | 1, |seed| seed.parse().unwrap());
    println!("ATTACK_SEED={seed}");
    let mut managed = Managed::new(seed);
    for _ in 0..10 {
        managed.batch();
    }
    managed.unload_all();
    let before = Held::by(managed.server.pid());
    for _ in 0..50 {
        managed.batch();
    }
    managed.unload_all();
    before.assert_still();

    // Who is called stays until the call is over, although it is gone for all others.
    let sleeper = managed.scene.folder().canonicalize().unwrap().join("allowed/sleeper.wasm");
    fs::copy(crate::support::guest("evil-17-host-sleep"), &sleeper).unwrap();
    managed.call("load_component", &json!({"source": sleeper}));
    managed.call("sleep", &json!({"seconds": 0}));
    let sleeping = managed.server.start_call("sleep", &json!({"seconds": 3}));
    let removed = managed.call("unload_component", &json!({"id": "sleeper"}));
    assert_eq!(removed["structuredContent"]["result"]["outcome"], "removed", "{removed}");
    let answer = managed.receive();
    assert_eq!(answer["id"], sleeping, "{answer}");
    assert_eq!(answer["result"]["structuredContent"], json!({"result": 3}), "{answer}");

    let sum = managed.call("add", &json!({"a": 2, "b": 40}));
    assert_eq!(sum["structuredContent"], json!({"result": 42}));
    managed.scene.do_well(&["gc"]);
    managed.scene.do_well(&["verify"]);
    assert!(managed.server.close().status.success());
}

/// What is there, and what it answers.
fn state(scene: &Scene) -> Vec<(String, String)> {
    let listed: Value = serde_json::from_str(&scene.do_well(&["list", "--json"]).stdout).unwrap();
    let components = listed["components"].as_array().unwrap();
    let answer = |component: &Value| {
        let id = component["id"].as_str().unwrap();
        let call: &[&str] = match id {
            "good" => &["call", id, "add", "a=2", "b=40"],
            _ => &["call", id, "two"],
        };
        (component["digest"].to_string(), scene.do_well(call).stdout)
    };
    components.iter().map(answer).collect()
}

/// All files but the notes of running servers, which come and go by themselves.
fn kept_files(scene: &Scene) -> Vec<PathBuf> {
    let mut files = files(&scene.home());
    files.retain(|file| !file.starts_with("running"));
    files
}

/// Kills at moments that are spread over the time that a command takes. Every single system call of all commands has its kill in
/// `tests/store/interrupted.rs`.
#[test]
fn row_29_kill_in_the_middle() {
    let scene = added();
    scene.write("b.wat", &component("two", 2));
    let before = state(&scene);
    let start = Instant::now();
    scene.do_well(&["add", "b.wat"]);
    let whole = start.elapsed();
    let after = state(&scene);
    scene.do_well(&["remove", "b"]);
    scene.do_well(&["gc"]);
    assert_eq!(state(&scene), before);

    let mut host = serve(&scene);
    let kept = kept_files(&scene);
    let mut moment = 0;
    host.survives(|_| {
        for _ in 0..8 {
            moment += 1;
            let mut command = scene.host(&scene.home(), &["add", "b.wat"]);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            thread::sleep(whole * moment / 40);
            child.kill().unwrap();
            child.wait().unwrap();

            scene.do_well(&["verify"]);
            let left = state(&scene);
            assert!(left == before || left == after, "{left:#?}");
            // What was begun can be done, and what is left of it is cleared away.
            scene.do_well(&["add", "b.wat"]);
            assert_eq!(state(&scene), after);
            scene.do_well(&["remove", "b"]);
            scene.do_well(&["gc"]);
            assert_eq!(kept_files(&scene), kept);
        }
    });
    host.close_well();

    // The server itself, while its agent loads.
    fs::create_dir(scene.folder().join("allowed")).unwrap();
    scene.write("allowed/b.wat", &component("two", 2));
    let folder = scene.folder().canonicalize().unwrap().join("allowed");
    scene.write("home/host.toml", &format!("[agent]\nsources = [{:?}]\n", folder.join("*")));
    for moment in 0..10 {
        let mut server = Server::start(&mut scene.host(&scene.home(), &["serve", "--allow-agent-admin"]));
        server.initialize();
        assert_good(&mut server);
        server.start_call("load_component", &json!({"source": folder.join("b.wat")}));
        thread::sleep(whole * moment / 20);
        drop(server);
        scene.do_well(&["verify"]);
        let mut host = serve(&scene);
        assert_good(&mut host.server);
        let tools = host.server.tool_names();
        assert!(tools == ["add"] || tools == ["add", "two"], "{tools:?}");
        host.close_well();
        if tools.len() == 2 {
            scene.do_well(&["remove", "b"]);
        }
    }
}

/// A shell that may mount, for its own eyes only, and becomes a server. What is in its mounts can be seen below `root`.
struct Mounted {
    host: Host,
    home: PathBuf,
}

impl Mounted {
    /// `script` gets the program, and exports the HOST_HOME that is served.
    fn serve(scene: &Scene, script: &str) -> Self {
        let mut command = Command::new("unshare");
        let script = format!("{script}\nexec \"$1\" serve --allow-agent-admin");
        command
            .args(["--map-root-user", "--mount", "sh", "-ec", &script, "sh"])
            .arg(env!("CARGO_BIN_EXE_host"));
        let mut command = scene.prepare(command, &scene.home());
        let host = Host::start(&mut command);
        let root = PathBuf::from(format!("/proc/{}/root", host.server.pid()));
        let home = scene.home().strip_prefix("/").map(|home| root.join(home)).unwrap();
        Self { host, home }
    }

    fn temporary_files(&self) -> usize {
        let is_temporary = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(".tmp");
        files(&self.home).iter().filter(|path| is_temporary(path)).count()
    }
}

/// A store and a plugin that its agent may load.
fn loadable() -> (Scene, PathBuf) {
    let scene = added();
    fs::create_dir(scene.folder().join("allowed")).unwrap();
    scene.write("allowed/plugin.wat", &component("one", 1));
    let folder = scene.folder().canonicalize().unwrap().join("allowed");
    scene.write("home/host.toml", &format!("[agent]\nsources = [{:?}]\n", folder.join("*")));
    (scene, folder.join("plugin.wat"))
}

/// All of the store in 1 MiB, and the rest of that filled.
const FULL: &str = r#"
cp -a "$HOST_HOME" "$HOST_HOME/../copy"
mount -t tmpfs -o size=1m,mode=700 tmpfs "$HOST_HOME"
cp -a "$HOST_HOME/../copy" "$HOST_HOME/home"
dd if=/dev/zero of="$HOST_HOME/ballast" bs=4k 2>/dev/null || true
export HOST_HOME="$HOST_HOME/home"
"#;

const READ_ONLY: &str = r#"mount --bind "$HOST_HOME" "$HOST_HOME"; mount -o remount,bind,ro "$HOST_HOME""#;

#[test]
fn row_30_full_disk() {
    let (scene, plugin) = loadable();
    let mut mounted = Mounted::serve(&scene, FULL);
    let arguments = json!({"source": plugin});
    mounted.host.survives(|server| {
        let error = server.call_error("load_component", &arguments);
        assert!(
            error.contains("No space left on device") && error.contains("hint: "),
            "{error}"
        );
        assert_eq!(server.tool_names().iter().filter(|name| *name == "one").count(), 0);
    });
    assert_eq!(mounted.temporary_files(), 0);

    fs::remove_file(mounted.home.join("ballast")).unwrap();
    let server = &mut mounted.host.server;
    let id = server.start_call("load_component", &arguments);
    let mut is_told = false;
    let mut is_loaded = false;
    while !(is_told && is_loaded) {
        let message = server.receive();
        if message["id"] == id {
            assert_eq!(message["result"]["isError"], false, "{message}");
            is_loaded = true;
        } else if !crate::support::tells_of_other_lists(&message) {
            assert_eq!(message["method"], "notifications/tools/list_changed", "{message}");
            is_told = true;
        }
    }
    assert_eq!(server.call("one", &json!({}))["structuredContent"], json!({"result": 1}));
    mounted.host.close_well();
}

#[test]
fn row_30_read_only_disk() {
    let (scene, plugin) = loadable();
    let before = files(&scene.home());
    let mut mounted = Mounted::serve(&scene, READ_ONLY);
    mounted.host.survives(|server| {
        let error = server.call_error("load_component", &json!({"source": plugin}));
        assert!(error.contains("Read-only file system") && error.contains("hint: "), "{error}");
    });
    mounted.host.close_well();
    wait_until("the server has gone", || files(&scene.home()) == before);
}
