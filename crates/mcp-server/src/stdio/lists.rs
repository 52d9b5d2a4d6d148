//! Lists of tools that the client was told, as they stood on the wire.
//!
//! Thousands of tools lie scattered over the memory, so that writing them as JSON takes many times as long as sending what was written. What
//! rmcp made of the first request is told again until something else is offered.

use std::io;
use std::sync::Arc;

use rmcp::model::{JsonObject, JsonRpcResponse, JsonRpcVersion2_0, RequestId, ServerJsonRpcMessage};

use super::outgoing::Piece;
use super::to_line;
use crate::direct::List;

/// The newest list of each era: a client may speak both.
#[derive(Default)]
pub(super) struct ToldLists(Vec<Told>);

struct Told {
    list: List,
    /// The JSON of the result.
    result: Arc<[u8]>,
}

impl ToldLists {
    /// The line that answers a request for a list, if that was told before.
    pub(super) fn line(&self, list: List, id: &RequestId) -> Option<io::Result<Vec<Piece>>> {
        let told = self.0.iter().find(|told| told.list == list)?;
        Some(line(id, &told.result))
    }

    /// Keeps the list in an answer, and gives the line that tells it.
    pub(super) fn keep(&mut self, list: List, answer: &ServerJsonRpcMessage) -> io::Result<Vec<Piece>> {
        let ServerJsonRpcMessage::Response(response) = answer else {
            return Ok(vec![to_line(answer)?.into()]);
        };
        let result = serde_json::to_vec(&response.result)?.into();
        let line = line(&response.id, &result);
        self.0.retain(|told| told.list.era != list.era);
        self.0.push(Told { list, result });
        line
    }
}

/// rmcp's own envelope around a result.
fn line(id: &RequestId, result: &Arc<[u8]>) -> io::Result<Vec<Piece>> {
    const EMPTY: &[u8] = b"{}}";
    let mut envelope = serde_json::to_vec(&JsonRpcResponse {
        jsonrpc: JsonRpcVersion2_0,
        id: id.clone(),
        result: JsonObject::new(),
    })?;
    let before = envelope.strip_suffix(EMPTY).ok_or(io::ErrorKind::InvalidData)?.len();
    envelope.truncate(before);
    Ok(vec![envelope.into(), Piece::Kept(Arc::clone(result)), b"}\n".to_vec().into()])
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ErrorData, JsonRpcMessage, ListToolsResult, ServerResult, Tool};

    use super::*;
    use crate::direct::Era;

    fn text(line: io::Result<Vec<Piece>>) -> Vec<u8> {
        line.unwrap().iter().flat_map(Piece::bytes).copied().collect()
    }

    fn answer(tool: &str, id: RequestId) -> ServerJsonRpcMessage {
        let tools = vec![Tool::new(tool.to_owned(), "a tool", JsonObject::new())];
        let result = ServerResult::ListToolsResult(ListToolsResult::with_all_items(tools));
        JsonRpcMessage::response(result, id)
    }

    #[test]
    fn a_list_is_told_again_in_the_same_words() {
        let ids = [RequestId::Number(7), RequestId::Number(-1), RequestId::String("a\"b}".into())];
        let mut told = ToldLists::default();
        for (era, tool) in [(Era::Session, "one"), (Era::Stateless, "other")] {
            let list = List { era, version: 3 };
            assert!(told.line(list, &RequestId::Number(1)).is_none());
            let first = answer(tool, RequestId::Number(1));
            assert_eq!(text(told.keep(list, &first)), to_line(&first).unwrap());
        }
        for id in ids {
            for (era, tool) in [(Era::Session, "one"), (Era::Stateless, "other")] {
                let again = told.line(List { era, version: 3 }, &id).unwrap();
                assert_eq!(text(again), to_line(&answer(tool, id.clone())).unwrap());
                assert!(told.line(List { era, version: 4 }, &id).is_none());
            }
        }
    }

    #[test]
    fn only_the_newest_list_and_no_error_is_kept() {
        let (older, newer) = (
            List {
                era: Era::Session,
                version: 1,
            },
            List {
                era: Era::Session,
                version: 2,
            },
        );
        let mut told = ToldLists::default();
        for (list, tool) in [(older, "one"), (newer, "other")] {
            told.keep(list, &answer(tool, RequestId::Number(1))).unwrap();
        }
        assert!(told.line(older, &RequestId::Number(1)).is_none() && told.line(newer, &RequestId::Number(1)).is_some());

        let mut told = ToldLists::default();
        let error = JsonRpcMessage::error(ErrorData::internal_error("no", None), Some(RequestId::Number(1)));
        assert_eq!(text(told.keep(newer, &error)), to_line(&error).unwrap());
        assert!(told.line(newer, &RequestId::Number(1)).is_none());
    }
}
