//! Lines, as they come out of a pipe. One that has come as a whole is not copied.

use std::pin::Pin;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, BufReader};

/// The longest line that is read: arguments of 8 MiB in base64, and room besides.
pub(super) const MAX_LINE: usize = 32 << 20;

/// What is read at a time, and what is kept for long lines after one.
const READ: usize = 64 << 10;

pub(super) struct Lines<R> {
    read: BufReader<R>,
    /// What of the buffer is the line that was handed out last.
    taken: usize,
    /// The beginning of a line whose end has not come yet, or one that came in pieces and was handed out.
    long: Vec<u8>,
    long_is_taken: bool,
    /// Within a line that was too long, until it ends.
    skipping: bool,
    has_ended: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Whole(&'a [u8]),
    TooLong,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(read: R) -> Self {
        Self {
            read: BufReader::with_capacity(READ, read),
            taken: 0,
            long: Vec::new(),
            long_is_taken: false,
            skipping: false,
            has_ended: false,
        }
    }

    /// Whether nothing more comes.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Waits until there is more, or nothing more comes. Nothing is lost when this is dropped.
    pub(super) async fn fill(&mut self) {
        self.forget_last();
        self.has_ended = match self.read.fill_buf().await {
            Ok(available) => available.is_empty(),
            Err(error) => {
                tracing::error!(%error, "stdin could not be read");
                true
            }
        };
    }

    /// The next line of what has been read.
    pub(super) fn next(&mut self) -> Option<Line<'_>> {
        self.forget_last();
        if self.has_ended {
            return self.rest();
        }
        let available = self.read.buffer();
        let newline = memchr::memchr(b'\n', available);
        let length = newline.map_or(available.len(), |newline| newline + 1);
        if newline.is_some() && self.long.is_empty() && !self.skipping {
            self.taken = length;
            return self.read.buffer().get(..length).map(Line::Whole);
        }
        if self.long.len() + length > MAX_LINE {
            self.long = Vec::new();
            self.skipping = true;
        }
        if !self.skipping {
            self.long.extend_from_slice(available.get(..length).unwrap_or_default());
        }
        Pin::new(&mut self.read).consume(length);
        newline.and_then(|_| self.rest())
    }

    /// Several lines in one piece, if so many have come.
    pub(super) fn several(&mut self, at_least: usize, at_most: usize) -> Option<Vec<u8>> {
        self.forget_last();
        if self.skipping || !self.long.is_empty() {
            return None;
        }
        let available = self.read.buffer();
        let newlines = memchr::memchr_iter(b'\n', available).take(at_most);
        let (count, last) = newlines.enumerate().last()?;
        if count + 1 < at_least {
            return None;
        }
        let lines = available.get(..=last)?.to_vec();
        Pin::new(&mut self.read).consume(lines.len());
        Some(lines)
    }

    /// What came in pieces. The last line counts without its newline too: that is how `printf` ends one.
    fn rest(&mut self) -> Option<Line<'_>> {
        self.long_is_taken = true;
        match (std::mem::take(&mut self.skipping), self.long.is_empty()) {
            (true, _) => Some(Line::TooLong),
            (false, true) => None,
            (false, false) => Some(Line::Whole(&self.long)),
        }
    }

    fn forget_last(&mut self) {
        Pin::new(&mut self.read).consume(std::mem::take(&mut self.taken));
        if std::mem::take(&mut self.long_is_taken) {
            self.long.clear();
            // A large message should not hold its memory forever.
            self.long.shrink_to(READ);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    async fn lines_of(pieces: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
        let (mut write, read) = tokio::io::duplex(1 << 10);
        let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
        tokio::spawn(async move {
            for piece in pieces {
                write.write_all(&piece).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        let owned = |line: Line<'_>| match line {
            Line::Whole(text) => Some(text.to_vec()),
            Line::TooLong => None,
        };
        let mut lines = Lines::new(read);
        let mut all = Vec::new();
        while !lines.has_ended() {
            lines.fill().await;
            while let Some(line) = lines.next() {
                all.push(owned(line));
            }
        }
        all
    }

    fn some(text: &str) -> Option<Vec<u8>> {
        Some(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn lines_come_out_whole_however_they_came_in() {
        assert_eq!(lines_of(&[]).await, []);
        assert_eq!(lines_of(&[b"a\nb\n\nc\n"]).await, ["a\n", "b\n", "\n", "c\n"].map(some));
        assert_eq!(
            lines_of(&[b"a", b"b\nc", b"d", b"\n", b"e"]).await,
            ["ab\n", "cd\n", "e"].map(some)
        );
        let long = vec![b'x'; 3 * READ];
        assert_eq!(
            lines_of(&[b"a\n", &long, b"\nb\n"]).await,
            [some("a\n"), Some([&*long, b"\n"].concat()), some("b\n")]
        );
    }

    #[tokio::test]
    async fn several_lines_come_in_one_piece() {
        let (mut write, read) = tokio::io::duplex(1 << 10);
        let mut lines = Lines::new(read);
        write.write_all(b"a\nb\n\nc\nd").await.unwrap();
        lines.fill().await;
        assert_eq!(lines.several(5, 9), None);
        assert_eq!(lines.next(), Some(Line::Whole(b"a\n")));
        assert_eq!(lines.several(4, 9), None);
        assert_eq!(lines.several(2, 2).unwrap(), b"b\n\n");
        assert_eq!(lines.several(1, 9).unwrap(), b"c\n");
        assert_eq!((lines.several(1, 9), lines.next()), (None, None));
        write.write_all(b"d\ne\n").await.unwrap();
        lines.fill().await;
        assert_eq!(lines.several(1, 9), None, "the first of them has begun already");
        assert_eq!(lines.next(), Some(Line::Whole(b"dd\n")));
        assert_eq!(lines.several(1, 9).unwrap(), b"e\n");
    }

    #[tokio::test]
    async fn what_is_too_long_is_passed_over() {
        let long = vec![b'x'; MAX_LINE];
        assert_eq!(lines_of(&[b"a\n", &long, b"x\nb\n"]).await, [some("a\n"), None, some("b\n")]);
        assert_eq!(lines_of(&[&long, b"x"]).await, [None]);
    }
}
