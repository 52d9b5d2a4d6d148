//! Waits in the host. A deadline that only counts guest instructions never fires here.

wit_bindgen::generate!({ path: "wit" });

struct HostSleep;

impl Guest for HostSleep {
    fn sleep(seconds: u32) -> u32 {
        std::thread::sleep(std::time::Duration::from_secs(seconds.into()));
        seconds
    }

    fn add(a: i32, b: i32) -> i32 {
        a.wrapping_add(b)
    }
}

export!(HostSleep);
