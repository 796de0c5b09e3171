"""The page as one file of HTML that opens from disk: no server, no network, and no script from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from runner.files import read_text
from runner.secrets import Secrets

HERE = Path(__file__).parent
STYLES = ("vendor/uPlot.min.css", "style.css")
SCRIPTS = (
    "vendor/dagre.min.js",
    "vendor/uPlot.iife.min.js",
    *(
        f"js/{name}.js"
        for name in ("elements", "data", "code", "search", "layout", "picture", "chart", "mapping", "pages", "main")
    ),
)


def page(data: Any, secrets: Secrets) -> str:
    """Returns the page of `site_data`, without secrets. A browser runs only the scripts and styles whose hashes stand
    at the top of the page, and fetches nothing, whatever the data are.
    """
    styles, scripts = [_asset(name) for name in STYLES], [_asset(name) for name in SCRIPTS]
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(read_text(HERE / "page.html.jinja"))
    return template.render(
        name=secrets.redacted(data["project"]["name"]),
        licences=read_text(HERE / "vendor" / "LICENSES.txt"),
        style_hashes=[_hash(one) for one in styles],
        script_hashes=[_hash(one) for one in scripts],
        styles=[Markup(one) for one in styles],
        scripts=[Markup(one) for one in scripts],
        data=Markup(_inert(secrets.redacted(_json({name: one for name, one in data.items() if name != "texts"})))),
        texts=Markup(_inert(_json(_packed(secrets.redacted(_json(data["texts"])))))),
    )


def _asset(name: str) -> str:
    return f"\n{read_text(HERE / name).strip()}\n"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _inert(text: str) -> str:
    """Returns JSON that cannot end the HTML element that it stands in.

    >>> _inert('["</script>"]')
    '["\\\\u003c/script>"]'
    """
    return text.replace("<", "\\u003c")


def _packed(text: str) -> str:
    """Returns a text deflated, in base64: the compiled SQL of a hundred sources is nearly the same a hundred times."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return base64.b64encode(packer.compress(text.encode()) + packer.flush()).decode()
