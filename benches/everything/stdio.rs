//! A server at the other end of two pipes, one message a line.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::question::{Asked, Era, Question, initialized, opening};
use crate::road::{Road, check};

/// What a pipe holds.
const PIPE: usize = 64 << 10;

/// A running server. Killed when dropped.
pub(crate) struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    line: Vec<u8>,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.with_context(|| format!("{:?}", command.get_program()))?;
        let stdin = child.stdin.take().context("a pipe was asked for")?;
        let stdout = child.stdout.take().context("a pipe was asked for")?;
        Ok(Self {
            child,
            stdin,
            stdout: BufReader::with_capacity(PIPE, stdout),
            line: Vec::new(),
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stdin.write_all(bytes)?)
    }

    /// The next line.
    pub(crate) fn receive(&mut self) -> Result<&[u8]> {
        self.line.clear();
        self.stdout.read_until(b'\n', &mut self.line)?;
        ensure!(self.line.ends_with(b"\n"), "the server has gone");
        Ok(&self.line)
    }

    /// The next line that answers something: a server may say other things as well.
    pub(crate) fn answer(&mut self) -> Result<&[u8]> {
        loop {
            let message: Value = serde_json::from_slice(self.receive()?)?;
            if message.get("method").is_none() {
                return Ok(&self.line);
            }
        }
    }

    pub(crate) fn ask(&mut self, asked: &Asked) -> Result<&[u8]> {
        let mut question = Question::line(asked);
        self.send(question.next())?;
        self.answer()
    }

    /// Says what a client says first, until the server has answered it.
    pub(crate) fn open(&mut self, era: Era) -> Result<()> {
        check("opening", self.ask(&opening(era))?, r#""result":"#)?;
        if era == Era::Session {
            self.send(format!("{}\n", initialized()).as_bytes())?;
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The same call again and again, of a server that is ready.
pub(crate) struct Piped {
    name: &'static str,
    pub(crate) process: Process,
    question: Question,
    /// Room for questions that are sent together.
    batch: Vec<u8>,
}

impl Piped {
    pub(crate) fn new(name: &'static str, mut process: Process, asked: &Asked, expected: &str) -> Result<Self> {
        check(name, process.ask(asked)?, expected)?;
        Ok(Self {
            name,
            process,
            question: Question::line(asked),
            batch: Vec::new(),
        })
    }

    fn send(&mut self, count: usize) -> Result<()> {
        self.batch.clear();
        for _ in 0..count {
            self.batch.extend_from_slice(self.question.next());
        }
        self.process.send(&self.batch)
    }
}

impl Road for Piped {
    fn name(&self) -> &'static str {
        self.name
    }

    /// Nothing follows the answer to the only question, and what is in it is not kept: to do that would take longer than some answers.
    fn call(&mut self) -> Result<()> {
        self.process.send(self.question.next())?;
        loop {
            let stdout = &mut self.process.stdout;
            let came = stdout.fill_buf()?;
            ensure!(!came.is_empty(), "the server has gone");
            let (is_whole, length) = (came.ends_with(b"\n"), came.len());
            stdout.consume(length);
            if is_whole {
                return Ok(());
            }
        }
    }

    /// Asks anew for all that was answered, with a single write for what came in a single read.
    fn calls(&mut self, count: usize, in_flight: usize) -> Result<()> {
        let mut sent = in_flight.min(count);
        self.send(sent)?;
        let mut answered = 0;
        while answered < count {
            let stdout = &mut self.process.stdout;
            let came = stdout.fill_buf()?;
            ensure!(!came.is_empty(), "the server has gone");
            let lines = came.iter().filter(|byte| **byte == b'\n').count();
            let length = came.len();
            stdout.consume(length);
            answered += lines;
            let more = lines.min(count - sent);
            if more > 0 {
                self.send(more)?;
                sent += more;
            }
        }
        Ok(())
    }
}
