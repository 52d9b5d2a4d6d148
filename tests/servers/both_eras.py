"""both_eras.py [json|sse]: a server over HTTP, of the official Python SDK, that speaks every version of the protocol."""

import socket
import sys
from typing import Annotated

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

server = MCPServer("both-eras", title="Both eras", version="1.2.3", instructions="Add, or shout.")


class Sum(BaseModel):
    sum: int


@server.tool(title="Sum of two")
def add(a: int, b: int) -> Sum:
    """Adds two numbers."""
    return Sum(sum=a + b)


@server.tool(structured_output=False)
def shout(text: str, times: int = 1, marks: list[str] | None = None) -> str:
    """Says it louder."""
    return "\n".join([text.upper() + "".join(marks or [])] * times)


@server.tool(structured_output=False)
def fail(reason: str) -> str:
    """Never works."""
    raise ToolError(reason)


@server.tool(structured_output=False)
async def steps(count: int, context: Context) -> str:
    """Tells how far it is."""
    for step in range(count):
        await context.report_progress(step, count)
    return f"{count} steps"


@server.tool(structured_output=False)
def place(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})], depth: int = 0) -> str:
    """Has an argument that is a header, too."""
    return f"{region}, {depth} deep"


@server.resource("notes://all", name="notes", mime_type="text/plain")
def notes() -> str:
    """All notes."""
    return "none"


@server.resource("notes://{year}/{month}", name="notes-of")
def notes_of(year: str, month: str) -> str:
    """The notes of a month."""
    return f"none in {month} {year}"


@server.prompt()
def review(code: str, language: str = "Rust") -> str:
    """Asks for a review."""
    return f"Review this {language}: {code}"


listener = socket.create_server(("127.0.0.1", 0))
print("here:", listener.getsockname()[1], flush=True)
app = server.streamable_http_app(json_response=sys.argv[1] == "json")
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
