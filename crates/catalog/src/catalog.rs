//! A catalog: its document, and the schemas in it compiled.

use serde_json::Value;

use crate::compose::{self, Payloads};
use crate::document::{Document, Item, SCHEMA_VERSION, Tool};
use crate::validate::{self, Side, ValidationError, Validators};

/// What a server offers, ready to be used.
#[derive(Clone, Debug)]
pub struct Catalog {
    document: Document,
    validators: Validators,
}

/// Why a file is no catalog.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("it is no catalog: {0}")]
    Shape(#[from] serde_json::Error),
    #[error("it is a catalog of version {found}; this program reads version {SCHEMA_VERSION}")]
    Version { found: u32 },
}

impl Catalog {
    /// Composes what a server said. No connection is needed.
    pub fn compose(payloads: Payloads) -> Self {
        let server = payloads.server.clone();
        let (items, problems) = compose::items(payloads);
        Self::of(Document {
            schema_version: SCHEMA_VERSION,
            server,
            items,
            problems,
        })
    }

    /// Reads a catalog that was written before.
    pub fn from_json(json: &[u8]) -> Result<Self, ReadError> {
        let document: Document = serde_json::from_slice(json)?;
        if document.schema_version != SCHEMA_VERSION {
            return Err(ReadError::Version {
                found: document.schema_version,
            });
        }
        Ok(Self::of(document))
    }

    fn of(mut document: Document) -> Self {
        let validators = Validators::compile(&mut document.items);
        Self { document, validators }
    }

    pub fn document(&self) -> &Document {
        &self.document
    }

    /// As it is written: the same catalog is always the same text.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(&self.document)
    }

    pub fn tool(&self, name: &str) -> Option<(&Item, &Tool)> {
        self.document.tools().find(|(item, _)| item.name == name)
    }

    /// Are these arguments what the tool takes?
    pub fn validate_input(&self, tool: &str, value: &Value) -> Result<(), ValidationError> {
        self.validate(tool, Side::Input, value)
    }

    /// Is this what the tool says it gives? A tool that does not say gives anything.
    pub fn validate_output(&self, tool: &str, value: &Value) -> Result<(), ValidationError> {
        self.validate(tool, Side::Output, value)
    }

    fn validate(&self, name: &str, side: Side, value: &Value) -> Result<(), ValidationError> {
        let (_, tool) = self.tool(name).ok_or_else(|| ValidationError::UnknownTool(name.to_owned()))?;
        match self.validators.get(name, side) {
            Some(validator) => validate::check(validator, value),
            None if side == Side::Output && tool.output.is_none() => Ok(()),
            None => Err(ValidationError::Unusable(name.to_owned())),
        }
    }
}
