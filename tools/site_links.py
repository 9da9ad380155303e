"""A hook of MkDocs (mkdocs.yml): links that leave docs/ become the path that
they name, and a link to a folder leads to its first page."""
import posixpath
import re

LINK = re.compile(r"\[([^\]]+)\]\(([^)\s:#]+)((?:#[^)\s]*)?)\)")


def on_page_markdown(markdown, page, config, files):
    folder = posixpath.dirname(page.file.src_uri)

    def changed(link):
        text, path, anchor = link.groups()
        target = posixpath.normpath(posixpath.join(folder, path))
        if target.startswith("../"):
            shown = target.replace("../", "")
            return f"{text} (`{shown}`)" if shown not in text else f"`{shown}`"
        if path.endswith("/"):
            first = min(file.src_uri for file in files
                        if file.src_uri.startswith(target + "/"))
            return f"[{text}]({posixpath.relpath(first, folder)}{anchor})"
        return link[0]

    return LINK.sub(changed, markdown)
