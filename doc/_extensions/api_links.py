"""Names of public classes and functions in running text lead to their pages."""

import re

from docutils import nodes

_NAME = re.compile(r"([A-Za-z]\w+)(\.\w+)?(\(.*\))?$", flags=re.DOTALL)
_KINDS = {"class", "function", "exception"}


def public_pages(app):
    """Page and anchor of each public class and function, by its short name."""
    objects = app.env.get_domain("py").objects
    return {
        name.rpartition(".")[2]: (entry.docname, entry.node_id)
        for name, entry in objects.items()
        if entry.objtype in _KINDS and entry.docname.startswith("generated/")
    }


def link_names(app, doctree, docname):
    """Wrap literals that are a public name, or a call of one, in links."""
    if docname.startswith("generated/") or app.builder.format != "html":
        return
    pages = public_pages(app)
    for literal in list(doctree.findall(nodes.literal)):
        found = _NAME.match(literal.astext())
        if not found or found[1] not in pages or _leads_somewhere(literal):
            continue
        page, anchor = pages[found[1]]
        address = f"{app.builder.get_relative_uri(docname, page)}#{anchor}"
        link = nodes.reference("", "", internal=True, refuri=address)
        literal.replace_self(link)
        link += literal


def _leads_somewhere(node):
    while node is not None:
        if isinstance(node, nodes.reference | nodes.title):
            return True
        node = node.parent
    return False


def setup(app):
    """Register the links."""
    app.connect("doctree-resolved", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
