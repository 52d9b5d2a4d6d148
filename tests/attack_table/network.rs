//! Rows 9–12: a guest that wants to reach what it may not, by addresses in disguise, by names, by redirects, and by requests that say
//! two things at once.

use std::net::ToSocketAddrs;

use serde_json::{Value, json};

use crate::servers::{Authority, Website, ok, redirect};
use crate::support::{Home, Server, text};
use crate::unharmed::Host;

/// What is on the servers that nobody may reach.
const CANARY: &str = "canary-77aa01";

fn private(address: &str) -> Website {
    Website::http(address, |_, to| ok(CANARY.as_bytes(), to))
}

/// Fails unless the guest is told no, in words that say what to do.
fn assert_refused(server: &mut Server, tool: &str, arguments: &Value) -> String {
    let result = server.call(tool, arguments);
    assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
    assert!(!result.to_string().contains(CANARY), "{tool} {arguments}: {result}");
    result.to_string()
}

/// All spellings of this machine that somebody thought of, for a port.
fn disguises(port: u16) -> Vec<String> {
    let hosts = [
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "0177.0.0.1",
        "0",
        "0.0.0.0",
        "127.0.0.1.",
        "localhost",
        "localhost.",
        "LOCALHOST",
        "a.localhost",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]",
        "%31%32%37.0.0.1",
        "①②⑦.0.0.1",
    ];
    hosts.map(|host| format!("http://{host}:{port}/")).into()
}

#[test]
fn row_09_ssrf() {
    let home = Home::new();
    let (v4, v6) = (private("127.0.0.1:0"), private("[::1]:0"));
    for options in [
        &[][..],
        &["--allow-net=*"],
        &["--allow-net=example.com", "--allow-net=*.example.com"],
    ] {
        let mut host = Host::serve(&home, options, &["http-client"]);
        host.survives(|server| {
            for url in disguises(v4.port()).into_iter().chain(disguises(v6.port())) {
                assert_refused(server, "get", &json!({"url": url}));
            }
            for url in [
                "http://169.254.169.254/latest/meta-data",
                "http://[fd00:ec2::254]/latest/meta-data",
                "http://10.0.0.1/",
                "http://192.168.0.1/",
                "http://172.16.0.1/",
                "http://100.64.0.1/",
                "http://[fe80::1]/",
            ] {
                let told = assert_refused(server, "get", &json!({"url": url}));
                assert!(told.contains("--allow-net"), "{url}: {told}");
            }
            for (address, port) in [("127.0.0.1", v4.port()), ("::1", v6.port()), ("::ffff:127.0.0.1", v4.port())] {
                let arguments = json!({"address": address, "port": port, "text": "GET / HTTP/1.0\r\n\r\n"});
                assert_refused(server, "tcp", &arguments);
                for tool in ["udp", "udp_connected"] {
                    assert_refused(server, tool, &json!({"address": address, "port": 53, "text": "x"}));
                }
            }
            assert_refused(server, "listen", &json!({"port": 0}));
        });
        host.close_well();
    }
    assert_eq!((v4.connections(), v6.connections()), (0, 0), "somebody got through");

    // What is granted by its address is reached, and nothing else is.
    let grant = format!("--allow-net=http://127.0.0.1:{}", v4.port());
    let mut host = Host::serve(&home, &[&grant], &["http-client"]);
    host.survives(|server| {
        let got = server.call("get", &json!({"url": v4.url("/")}));
        assert_eq!(got["structuredContent"]["result"], json!({"ok": CANARY}), "{got}");
        assert_refused(server, "get", &json!({"url": v6.url("/")}));
        let arguments = json!({"address": "127.0.0.1", "port": v6.port(), "text": ""});
        assert_refused(server, "tcp", &arguments);
    });
    host.close_well();
    assert_eq!((v4.connections(), v6.connections()), (5, 0));

    // Denied is denied, whatever else is allowed.
    let deny = format!("--deny-net=127.0.0.1:{}", v4.port());
    let mut host = Host::serve(&home, &[&grant, "--allow-net=*", &deny], &["http-client"]);
    host.survives(|server| {
        assert_refused(server, "get", &json!({"url": v4.url("/")}));
    });
    host.close_well();
    assert_eq!(v4.connections(), 5);
}

/// A name that may be asked for, and that stands for an address that may not. A resolver that changes its mind between two questions
/// is in the tests of `sandbox`: here there is only the one of this machine.
#[test]
fn row_10_dns_rebinding() {
    let home = Home::new();
    let website = private("127.0.0.1:0");
    let port = website.port();
    let mut names = vec!["localhost".to_owned(), "rebound.localhost".to_owned()];
    // The name of this machine, where it has an address, and a private one at that.
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .unwrap()
        .trim()
        .to_owned();
    let is_private = (own.as_str(), port).to_socket_addrs().is_ok_and(|mut addresses| {
        addresses.all(|address| match address.ip() {
            std::net::IpAddr::V4(ip) => ip.is_private() || ip.is_loopback(),
            std::net::IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
        })
    });
    if is_private {
        names.push(own.to_lowercase());
    }
    let mut options = vec!["--allow-net=*".to_owned()];
    // Even where the very name is granted; but `localhost` is granted for what it is.
    options.extend(names.iter().skip(2).map(|name| format!("--allow-net=http://{name}:{port}")));
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let mut host = Host::serve(&home, &options, &["http-client"]);
    host.survives(|server| {
        for name in &names {
            assert_refused(server, "get", &json!({"url": format!("http://{name}:{port}/")}));
            assert_refused(server, "tcp_name", &json!({"name": name, "port": port, "text": ""}));
        }
    });
    host.close_well();
    assert_eq!(website.connections(), 0, "the name was taken for the address");

    let grant = format!("--allow-net=http://localhost:{port}");
    let mut host = Host::serve(&home, &[&grant], &["http-client"]);
    host.survives(|server| {
        let got = server.call("get", &json!({"url": format!("http://localhost:{port}/")}));
        assert_eq!(got["structuredContent"]["result"], json!({"ok": CANARY}), "{got}");
    });
    host.close_well();
    assert_eq!(website.connections(), 5);
}

#[test]
fn row_11_redirect_of_a_guest() {
    let home = Home::new();
    let forbidden = private("127.0.0.1:0");
    let target = forbidden.url("/");
    let granted = Website::http("127.0.0.1:0", move |_, to| redirect(&target, to));
    let grant = format!("--allow-net=http://127.0.0.1:{}", granted.port());
    let mut host = Host::serve(&home, &[&grant], &["http-client"]);
    host.survives(|server| {
        assert_refused(server, "follow", &json!({"url": granted.url("/"), "hops": 5}));
        // The host itself follows nothing.
        let got = server.call("get", &json!({"url": granted.url("/")}));
        assert_eq!(got["structuredContent"]["result"], json!({"ok": ""}), "{got}");
    });
    host.close_well();
    assert_eq!((granted.connections(), forbidden.connections()), (10, 0));
}

/// That a public server cannot lead into a private network needs one, or a resolver that is told so: see the tests of `sources`.
#[test]
fn row_11_redirect_of_a_download() {
    let home = Home::new();
    let authority = Authority::new(&home);
    let plain = private("127.0.0.1:0");
    let target = plain.url("/x.wasm");
    let website = Website::https(&authority, move |request, to| {
        let path = request.split(' ').nth(1).unwrap_or_default();
        match path.strip_prefix("/hop/").and_then(|hop| hop.parse::<u32>().ok()) {
            Some(hop) => redirect(&format!("/hop/{}", hop + 1), to),
            None if path.starts_with("/circle") => redirect("/circle.wasm", to),
            None if path.starts_with("/login") => redirect("https://me:password@127.0.0.1/x.wasm", to),
            None if path.starts_with("/file") => redirect("file:///etc/passwd", to),
            None => redirect(&target, to),
        }
    });
    let hosts = format!("[agent]\nsources = [\"{}*\"]\n", website.url("/"));
    home.write("home/host.toml", hosts);
    let mut command = home.host(&["serve", "--allow-agent-admin"]);
    command
        .arg(crate::unharmed::good(&home))
        .env("HOST_CA_FILE", authority.file());
    let mut host = Host::start(&mut command);
    host.survives(|server| {
        for (path, part) in [
            ("/plain.wasm", "which is not https"),
            ("/file.wasm", "which is not https"),
            ("/login.wasm", "credentials"),
            ("/circle.wasm", "circle"),
            ("/hop/1", "5"),
        ] {
            let result = server.call("load_component", &json!({"source": website.url(path)}));
            assert_eq!(result["isError"], true, "{path}: {result}");
            assert!(text(&result).contains(part), "{path}: {result}");
            assert!(!text(&result).contains("password"), "{path}: {result}");
        }
    });
    host.close_well();
    assert_eq!(plain.connections(), 0);
}

#[test]
fn row_12_two_meanings() {
    let home = Home::new();
    let forbidden = private("127.0.0.1:0");
    let granted = Website::http("127.0.0.1:0", |_, to| ok(b"granted", to));
    let [authority, other] = [&granted, &forbidden].map(|website| format!("127.0.0.1:{}", website.port()));
    let grant = format!("--allow-net=http://{authority}");
    let mut host = Host::serve(&home, &[&grant], &["http-client"]);
    let request = |authority: &str, path: &str, headers: Value| {
        json!({"request": {
            "method": "GET", "scheme": "http", "authority": authority, "path": path, "headers": headers,
            "body": null, "timeout_ms": null,
        }})
    };
    host.survives(|server| {
        // The path is a whole URL, which a proxy or a shared front end would go by.
        for path in [
            format!("http://{other}/"),
            format!("//{other}/"),
            format!("@{other}/"),
            format!("http://{other}/ HTTP/1.1\r\nX: "),
            " /".to_owned(),
        ] {
            server.call("fetch", &request(&authority, &path, json!([])));
        }
        for authority in [
            format!("user:password@{authority}"),
            format!("{authority}@{other}"),
            format!("{other}#@{authority}"),
            format!("{authority}/@{other}"),
            format!("{authority}\\@{other}"),
            format!("{authority},{other}"),
            format!("{authority} {other}"),
        ] {
            assert_refused(server, "fetch", &request(&authority, "/", json!([])));
        }
        for name in [
            "host",
            "Host",
            "HOST",
            "connection",
            "proxy-authorization",
            "transfer-encoding",
        ] {
            let headers = json!([{"val0": name, "val1": other}]);
            server.call("fetch", &request(&authority, "/", headers));
        }
        let got = server.call("fetch", &request(&authority, "/plain", json!([])));
        assert_eq!(got["structuredContent"]["result"]["ok"]["body"], "granted", "{got}");
    });
    host.close_well();
    assert_eq!(forbidden.connections(), 0);
    let requests = granted.requests();
    assert!(requests.iter().any(|request| request.starts_with("GET /plain HTTP/1.1\r\n")));
    for request in requests {
        // Whatever came through says one thing only: where it goes is in its one `Host`, and the rest is a path.
        let (line, headers) = request.split_once("\r\n").unwrap();
        assert!(line.starts_with("GET /") && line.ends_with(" HTTP/1.1"), "{request}");
        let is_host = |line: &&str| line.to_ascii_lowercase().starts_with("host:");
        let hosts: Vec<&str> = headers.lines().filter(is_host).collect();
        assert_eq!(hosts.len(), 1, "{request}");
        assert!(hosts[0].ends_with(&authority) && !headers.contains(&other), "{request}");
    }
}
