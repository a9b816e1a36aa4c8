"""Lines in a box, as `explore` and `coverage` show their figures over a threshold."""

from __future__ import annotations

from typing import Any

Data = dict[str, Any]
WIDTH, HEIGHT = 420, 220
LEFT, BOTTOM = 40, 30  # room for the axes


def chart(title: str, label: str, series: dict[str, list[list[float]]]) -> Data:
    """Polylines in a box; the vertical axis is a share from 0 to 1."""
    points = [point for line in series.values() for point in line]
    last = max((x for x, _ in points), default=1) or 1

    def place(point: list[float]) -> str:
        x = LEFT + (WIDTH - LEFT - 10) * point[0] / last
        y = HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 10) * point[1]
        return f"{x:.1f},{y:.1f}"

    return {
        "title": title,
        "label": label,
        "last": last,
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "bottom": HEIGHT - BOTTOM,
        "grid": [
            {"y": HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 10) * part / 4, "text": f"{25 * part} %"}
            for part in range(5)
        ],
        "lines": [
            {"name": name, "points": " ".join(map(place, line)), "last": line[-1][1]}
            for name, line in series.items()
            if line
        ],
    }
