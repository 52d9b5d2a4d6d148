//! Answers every line with the same line: the least that a program at the other end of two pipes can take.
//!
//! One read and one write for whatever has come meanwhile. It speaks no protocol; who measures it asks it nothing else. The line is the one in
//! the file that is named first, if there is one.

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
    let answer = match std::env::args_os().nth(1) {
        Some(file) => std::fs::read(file)?,
        None => ANSWER.to_vec(),
    };
    let (mut stdin, mut stdout) = (io::stdin().lock(), io::stdout().lock());
    let mut buffer = vec![0; 64 << 10];
    let mut answers = Vec::new();
    loop {
        let length = stdin.read(&mut buffer)?;
        if length == 0 {
            return Ok(());
        }
        match buffer.iter().take(length).filter(|byte| **byte == b'\n').count() {
            1 => stdout.write_all(&answer)?,
            lines => {
                answers.clear();
                (0..lines).for_each(|_| answers.extend_from_slice(&answer));
                stdout.write_all(&answers)?;
            }
        }
        stdout.flush()?;
    }
}
