"""Is all that a server said in its catalog, and nothing else?"""

from host import expect, expect_equal
from raw import PREFIX

# Where a field of an entry is found in an item, by type. What is not named here is an extension.
COMMON = {
    "name": ("name",),
    "title": ("title",),
    "description": ("description",),
    "icons": ("meta", "icons"),
    "_meta": ("meta", "_meta"),
}
PLACES = {
    "tool": COMMON
    | {
        "annotations": ("meta", "annotations"),
        "inputSchema": ("detail", "input"),
        "outputSchema": ("detail", "output"),
        "execution": ("detail", "execution"),
    },
    "resource": COMMON
    | {
        "annotations": ("detail", "annotations"),
        "uri": ("detail", "uri"),
        "mimeType": ("detail", "mimeType"),
        "size": ("detail", "size"),
    },
    "resource-template": COMMON
    | {"annotations": ("meta", "annotations"), "uriTemplate": ("detail", "uriTemplate"), "mimeType": ("detail", "mimeType")},
    "prompt": COMMON | {"annotations": ("meta", "annotations"), "arguments": ("detail", "arguments")},
}
# What is made of other fields.
DERIVED = {"tool": {"ui"}, "resource": {"ui"}, "resource-template": {"variables"}, "prompt": {"input"}}
TYPES = list(PLACES)


def entry_of(item):
    """The entry from which the item was made, put together again."""
    places = PLACES[item["type"]]
    known = {place: field for field, place in places.items()}
    entry = dict(item["meta"].get("extensions", {}))
    flat = {(key,): value for key, value in item.items() if key not in ("type", "meta", "detail", "error")}
    flat |= {("meta", key): value for key, value in item["meta"].items() if key != "extensions"}
    flat |= {("detail", key): value for key, value in item["detail"].items() if key not in DERIVED[item["type"]]}
    for place, value in flat.items():
        expect(place in known, f"nobody said {place} of {item}")
        entry[known[place]] = value
    return entry


def as_said(kind, entry):
    """An entry without what says nothing."""
    entry = {key: value for key, value in entry.items() if value is not None}
    # A prompt without arguments is one with none.
    return {"arguments": []} | entry if kind == "prompt" else entry


def exact(value):
    """Python takes 1, 1.0 and True for the same; they are not the same on the wire."""
    if isinstance(value, dict):
        return {key: exact(value) for key, value in value.items()}
    if isinstance(value, list):
        return [exact(value) for value in value]
    return (type(value).__name__, value)


def order(item):
    address = item["detail"].get("uri") or item["detail"].get("uriTemplate") or ""
    return TYPES.index(item["type"]), item["name"].encode(), address.encode()


def expect_complete(catalog, told, lists, modern):
    """The catalog of a server that keeps to the protocol has these lists, each entry as it was said."""
    server = catalog["server"]
    info = told["_meta"][PREFIX + "serverInfo"] if modern else told["serverInfo"]
    expect_equal(server["info"], info, "the information about the server")
    expect_equal(server["capabilities"], told["capabilities"], "the capabilities")
    expect_equal(server.get("instructions"), told.get("instructions"), "the instructions")
    if modern:
        expect_equal(server["protocol"]["supported"], told["supportedVersions"], "the versions")
        expect(server["protocol"]["version"] in told["supportedVersions"], f"the version of {server}")
    else:
        expect_equal(server["protocol"]["version"], told["protocolVersion"], "the version")

    items = catalog["items"]
    expect_equal(items, sorted(items, key=order), "the order")
    for kind, entries in lists.items():
        found = [item for item in items if item["type"] == kind]
        expect_equal(len(found), len(entries), f"the number of {kind}s")
        # By name and address; what is alike stays as the server had it.
        expected = sorted(entries, key=lambda entry: (entry["name"], entry.get("uri") or entry.get("uriTemplate") or ""))
        for item, entry in zip(found, expected):
            expect_equal(exact(entry_of(item)), exact(as_said(kind, entry)), f"the entry of {item['name']}")
            ui = (entry.get("_meta") or {}).get("ui")
            if ui is not None:
                expect_equal(item["detail"].get("ui"), ui, f"the view of {item['name']}")
