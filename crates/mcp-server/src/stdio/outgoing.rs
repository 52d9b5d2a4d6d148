//! What waits to be written. Small lines that wait together are written together.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Lines up to this are put together.
const SMALL: usize = 16 << 10;

/// With more than this waiting, whoever has more to say waits, too.
pub(super) const ENOUGH: usize = 64 << 10;

pub(super) struct Outgoing<W> {
    write: W,
    pieces: VecDeque<Piece>,
    /// Of the first piece.
    written: usize,
    waiting: usize,
    is_flushed: bool,
}

/// A line, or a part of one.
pub(super) enum Piece {
    Own(Vec<u8>),
    /// Told more than once, and therefore not copied.
    Kept(Arc<[u8]>),
}

impl Piece {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Kept(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for Piece {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Own(bytes)
    }
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

    pub(super) fn push(&mut self, piece: impl Into<Piece>) {
        let piece = piece.into();
        let bytes = piece.bytes();
        self.waiting += bytes.len();
        self.is_flushed = false;
        match self.pieces.back_mut() {
            Some(Piece::Own(last)) if last.len() + bytes.len() <= SMALL => last.extend_from_slice(bytes),
            _ => self.pieces.push_back(piece),
        }
    }

    pub(super) fn extend(&mut self, pieces: impl IntoIterator<Item = impl Into<Piece>>) {
        pieces.into_iter().for_each(|piece| self.push(piece));
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
            let count = self
                .write
                .write(piece.bytes().get(self.written..).unwrap_or_default())
                .await?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.written += count;
            self.waiting -= count;
            if self.written >= piece.bytes().len() {
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
            outgoing.push(Piece::Kept(line.as_slice().into()));
        }
        assert!(!outgoing.has_room() && outgoing.pieces.len() < 2 * lines.len());
        let reading = tokio::spawn(async move {
            let mut all = Vec::new();
            read.read_to_end(&mut all).await.unwrap();
            all
        });
        while !outgoing.is_done() {
            outgoing.progress().await.unwrap();
        }
        assert!(outgoing.has_room() && outgoing.waiting() == 0);
        drop(outgoing);
        let twice: Vec<&[u8]> = lines.iter().flat_map(|line| [line.as_slice(); 2]).collect();
        assert_eq!(reading.await.unwrap(), twice.concat());
    }
}
