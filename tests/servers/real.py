"""Servers that nobody here wrote. Each is started by its path, in the version that `scripts/test-servers` installs."""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Server:
    command: list
    # At least so many, so that an empty catalog of an empty list is not taken for a success.
    tools: int
    variables: dict = field(default_factory=dict)
    # Lists that it says to have and then refuses.
    refuses: tuple = ()


def servers(folder):
    """The servers, by name, with what they need in this folder."""
    folder = Path(folder)
    files, repository = folder / "files", folder / "repository"
    files.mkdir(parents=True)
    (files / "hello.txt").write_text("hello\n")
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", repository], check=True)

    node, modules = f"{os.environ['NODE']}/node", Path(os.environ["NODE_MODULES"])
    newer, older = Path(os.environ["PYTHON_NEWER"]) / "bin", Path(os.environ["PYTHON_OLDER"]) / "bin"
    official = modules / "@modelcontextprotocol"

    return {
        # npm, with the first TypeScript SDK.
        "everything": Server([node, official / "server-everything/dist/index.js", "stdio"], 13),
        "filesystem": Server([node, official / "server-filesystem/dist/index.js", files], 14),
        "memory": Server([node, official / "server-memory/dist/index.js"], 9, variables={"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}),
        "sequential-thinking": Server([node, official / "server-sequential-thinking/dist/index.js"], 1),
        "notion": Server([node, modules / "@notionhq/notion-mcp-server/bin/cli.mjs"], 24),
        "playwright": Server([node, modules / "@playwright/mcp/cli.js"], 25),
        "chrome-devtools": Server(
            [node, modules / "chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js", "--no-usage-statistics"],
            30,
            variables={"CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS": "1"},
        ),
        # npm, with the second.
        "budget-allocator": Server([node, official / "server-budget-allocator/dist/index.js", "--stdio"], 1),
        "context7": Server([node, modules / "@upstash/context7-mcp/dist/index.js"], 2),
        # PyPI, with the second Python SDK.
        "time": Server([newer / "mcp-server-time", "--local-timezone=UTC"], 2),
        "git": Server([newer / "mcp-server-git", "--repository", repository], 12),
        "fetch": Server([newer / "mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"], 1),
        # PyPI, with the first.
        "calculator": Server([older / "mcp-server-calculator"], 1),
        "sqlite": Server([older / "mcp-server-sqlite", "--db-path", folder / "data.db"], 6, refuses=("resources/templates/list",)),
    }
