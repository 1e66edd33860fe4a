"""Size, background and colours of the book's own figures; colours follow the reader's choice of light or dark."""

WIDTH = 820

STYLE = """
  svg { font: 13px system-ui, sans-serif; }
  .page { fill: #ffffff; stroke: #d0d7de; }
  .text { fill: #1f2328; } .quiet { fill: #59636e; }
  .axis { stroke: #818b98; fill: none; } .grid { stroke: #d0d7de; }
  .down { fill: #f3d9d5; } .downtext { fill: #a3260d; }
  .expected { fill: #dbe7f5; }
  .fibre { fill: #4a90d9; } .cellular { fill: #e2a53a; }
  .both { stroke: #1f2328; } .backup { stroke: #818b98; stroke-dasharray: 6 4; }
  .line { fill: none; stroke-width: 2; }
  .dot { fill: #4a90d9; stroke: #4a90d9; } .odd { fill: #e2a53a; stroke: #e2a53a; }
  .hollow { fill: none; stroke: #818b98; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; stroke: #3d444d; }
    .text { fill: #f0f6fc; } .quiet { fill: #9198a1; }
    .axis { stroke: #656c76; } .grid { stroke: #2a313c; }
    .down { fill: #4a1f1a; } .downtext { fill: #ff9e8a; }
    .expected { fill: #1c2f47; }
    .both { stroke: #f0f6fc; } .backup { stroke: #9198a1; }
  }
"""


def text(x, y, words, kind="quiet", anchor="start", more=""):
    """Words at a place; `more` are further attributes."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{words}</text>'


def document(height, title, body):
    """Returns an SVG file with these elements on a background."""
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    page = f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    return "\n".join([head, f"<title>{title}</title>", f"<style>{STYLE}</style>", page, *body, "</svg>", ""])
