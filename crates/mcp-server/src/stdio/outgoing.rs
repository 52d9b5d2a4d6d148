//! What waits to be written. Small lines that wait together are written together.

use std::collections::VecDeque;
use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Lines up to this are put together.
const SMALL: usize = 16 << 10;

/// With more than this waiting, whoever has more to say waits, too.
const ENOUGH: usize = 64 << 10;

pub(super) struct Outgoing<W> {
    write: W,
    pieces: VecDeque<Vec<u8>>,
    /// Of the first piece.
    written: usize,
    waiting: usize,
    is_flushed: bool,
}

impl<W: AsyncWrite + Unpin> Outgoing<W> {
    pub(super) fn new(write: W) -> Self {
        Self {
            write,
            pieces: VecDeque::new(),
            written: 0,
            waiting: 0,
            is_flushed: true,
        }
    }

    pub(super) fn push(&mut self, line: Vec<u8>) {
        self.waiting += line.len();
        self.is_flushed = false;
        match self.pieces.back_mut() {
            Some(last) if last.len() + line.len() <= SMALL => last.extend_from_slice(&line),
            _ => self.pieces.push_back(line),
        }
    }

    /// Takes a line, if there is one.
    pub(super) fn extend(&mut self, line: Option<Vec<u8>>) {
        line.into_iter().for_each(|line| self.push(line));
    }

    pub(super) fn has_room(&self) -> bool {
        self.waiting < ENOUGH
    }

    /// How many bytes are not written yet.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_flushed
    }

    /// Writes a part of what waits, and sees to it that all that was written arrives. Nothing is lost when this is dropped.
    pub(super) async fn progress(&mut self) -> io::Result<()> {
        if let Some(piece) = self.pieces.front() {
            let count = self.write.write(piece.get(self.written..).unwrap_or_default()).await?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.written += count;
            self.waiting -= count;
            if self.written >= piece.len() {
                self.pieces.pop_front();
                self.written = 0;
            }
        }
        if self.pieces.is_empty() {
            self.write.flush().await?;
            self.is_flushed = true;
        }
        Ok(())
    }

    pub(super) async fn shutdown(&mut self) -> io::Result<()> {
        self.write.shutdown().await
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn everything_arrives_in_its_order() {
        let (write, mut read) = tokio::io::duplex(100);
        let mut outgoing = Outgoing::new(write);
        let lines: Vec<Vec<u8>> = [1, 10, SMALL - 5, 7, 3 * SMALL, 1, ENOUGH, 2]
            .into_iter()
            .zip(b'a'..)
            .map(|(length, letter)| vec![letter; length])
            .collect();
        assert!(outgoing.is_done());
        for line in &lines {
            outgoing.push(line.clone());
        }
        assert!(!outgoing.has_room() && outgoing.pieces.len() < lines.len());
        let reading = tokio::spawn(async move {
            let mut all = Vec::new();
            read.read_to_end(&mut all).await.unwrap();
            all
        });
        while !outgoing.is_done() {
            outgoing.progress().await.unwrap();
        }
        assert!(outgoing.has_room());
        drop(outgoing);
        assert_eq!(reading.await.unwrap(), lines.concat());
    }
}
