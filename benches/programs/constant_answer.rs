//! Answers every line with the same line: the least that a program at the other end of two pipes can take.
//!
//! One read and one write for whatever has come meanwhile. It speaks no protocol; who measures it asks it nothing else.

use std::io::{self, Read, Write};

/// As long as the answer of an echo of a hundred bytes.
const ANSWER: &[u8] = concat!(
    r#"{"jsonrpc":"2.0","id":1000000001,"result":{"content":[{"type":"text","text":""#,
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789",
    r#""}],"isError":false}}"#,
    "\n"
)
.as_bytes();

fn main() -> io::Result<()> {
    let (mut stdin, mut stdout) = (io::stdin().lock(), io::stdout().lock());
    let mut buffer = vec![0; 64 << 10];
    let mut answers = Vec::new();
    loop {
        let length = stdin.read(&mut buffer)?;
        if length == 0 {
            return Ok(());
        }
        answers.clear();
        for _ in buffer.iter().take(length).filter(|byte| **byte == b'\n') {
            answers.extend_from_slice(ANSWER);
        }
        stdout.write_all(&answers)?;
        stdout.flush()?;
    }
}
