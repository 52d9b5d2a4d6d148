//! Asks for the network through WASI 0.3, whose functions are not those of 0.2.

mod http;
mod sockets;

wasip3::wit_bindgen::generate!({ path: "wit", runtime_path: "wasip3::wit_bindgen::rt" });

struct HttpClient;

impl Guest for HttpClient {
    async fn get(url: String) -> Result<String, String> {
        http::get(&url).await
    }

    async fn resolve(name: String) -> Result<Vec<String>, String> {
        let addresses = sockets::resolve(name).await?;
        Ok(addresses.iter().map(ToString::to_string).collect())
    }

    async fn tcp(address: String, port: u16, text: String) -> Result<String, String> {
        sockets::exchange(sockets::literal(&address)?, port, &text).await
    }

    async fn tcp_name(name: String, port: u16, text: String) -> Result<String, String> {
        let mut failure = format!("resolve: {name} has no address");
        for address in sockets::resolve(name).await? {
            match sockets::exchange(address, port, &text).await {
                Err(error) => failure = error,
                answer => return answer,
            }
        }
        Err(failure)
    }

    async fn udp(address: String, port: u16, text: String) -> Result<(), String> {
        sockets::send_datagram(sockets::literal(&address)?, port, &text, sockets::Receiver::InDatagram).await
    }

    async fn udp_connected(address: String, port: u16, text: String) -> Result<(), String> {
        sockets::send_datagram(sockets::literal(&address)?, port, &text, sockets::Receiver::OfSocket).await
    }

    fn add(a: u32, b: u32) -> u32 {
        a.wrapping_add(b)
    }
}

/// The step, and the name of a case as WIT has it, in small letters, with what comes with it: `ErrorCode::ConnectionRefused` is
/// `connection-refused`.
fn failure(step: &str, error: impl std::fmt::Debug) -> String {
    let error = format!("{error:?}");
    let case = error.split_once("::").map_or(error.as_str(), |(_, case)| case);
    let (name, payload) = case.split_at(case.find(|c: char| !c.is_alphanumeric()).unwrap_or(case.len()));
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push('-');
        }
        words.extend(letter.to_lowercase());
    }
    format!("{step}: {words}{payload}")
}

export!(HttpClient);
