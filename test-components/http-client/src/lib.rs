//! Asks for anything of the network, as tests tell it to: over `wasi:http`, and over bare sockets.

mod http;
mod sockets;

wit_bindgen::generate!({ path: "wit" });

struct HttpClient;

impl Guest for HttpClient {
    fn fetch(request: Request) -> Result<Response, String> {
        let response = http::send(&request)?;
        let mut body = Vec::new();
        response.read(|bytes| body.extend_from_slice(bytes))?;
        Ok(Response {
            status: response.status(),
            headers: response.headers(),
            body: text(&body),
        })
    }

    fn get(url: String) -> Result<String, String> {
        let request = http::get(&url)?;
        Ok(Self::fetch(request)?.body)
    }

    fn follow(mut url: String, hops: u32) -> Result<String, String> {
        for _ in 0..=hops {
            let response = Self::fetch(http::get(&url)?)?;
            let location = response
                .headers
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case("location"));
            match location {
                Some((_, location)) if (300..400).contains(&response.status) => url = location.clone(),
                _ => return Ok(response.body),
            }
        }
        Err(format!("follow: more than {hops} hops"))
    }

    fn flood(url: String) -> Result<u64, String> {
        let response = http::send(&http::get(&url)?)?;
        let mut count = 0;
        response.read(|bytes| count += bytes.len() as u64)?;
        Ok(count)
    }

    fn resolve(name: String) -> Result<Vec<String>, String> {
        let addresses = sockets::resolve(&name)?;
        Ok(addresses.iter().map(ToString::to_string).collect())
    }

    fn tcp(address: String, port: u16, text: String) -> Result<String, String> {
        sockets::exchange(sockets::literal(&address)?, port, &text)
    }

    fn tcp_name(name: String, port: u16, text: String) -> Result<String, String> {
        let mut failure = format!("resolve: {name} has no address");
        for address in sockets::resolve(&name)? {
            match sockets::exchange(address, port, &text) {
                Err(error) => failure = error,
                answer => return answer,
            }
        }
        Err(failure)
    }

    fn udp(address: String, port: u16, text: String) -> Result<(), String> {
        sockets::send_datagram(sockets::literal(&address)?, port, &text, sockets::Receiver::InDatagram)
    }

    fn udp_connected(address: String, port: u16, text: String) -> Result<(), String> {
        sockets::send_datagram(sockets::literal(&address)?, port, &text, sockets::Receiver::OfSocket)
    }

    fn listen(port: u16) -> Result<u16, String> {
        sockets::listen(port)
    }

    fn add(a: u32, b: u32) -> u32 {
        a.wrapping_add(b)
    }
}

/// Bytes as text: what tests send is text, and what is not is shown as far as it goes.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

export!(HttpClient);
