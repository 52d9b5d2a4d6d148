//! Tells everything it can learn about the machine it runs on.

wit_bindgen::generate!({ path: "wit" });

// std hides preopens and the initial directory, so ask WASI itself.
use wasip2::{cli, filesystem};

struct EnvDump;

impl Guest for EnvDump {
    fn variables() -> Vec<(String, String)> {
        cli::environment::get_environment()
    }

    fn arguments() -> Vec<String> {
        cli::environment::get_arguments()
    }

    fn preopens() -> Vec<String> {
        filesystem::preopens::get_directories()
            .into_iter()
            .map(|(_, name)| name)
            .collect()
    }

    fn initial_directory() -> Option<String> {
        cli::environment::initial_cwd()
    }

    fn read(path: String) -> Result<String, String> {
        std::fs::read_to_string(path).map_err(|error| error.to_string())
    }

    fn add(a: i32, b: i32) -> i32 {
        a.wrapping_add(b)
    }
}

export!(EnvDump);
