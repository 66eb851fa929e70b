"""A reactive notebook: sliders change a day of charging, and the answer follows.

marimo edit notebooks/live_charging.py      in a browser
python notebooks/live_charging.py           once, with the sliders where they begin
"""

import marimo

app = marimo.App(width="medium")


@app.cell
def _():
    import marimo as mo

    import cmpg

    return cmpg, mo


@app.cell
def _(mo):
    capacity = mo.ui.slider(4, 12, value=8, show_value=True, label="capacity (cars at once)")
    threshold = mo.ui.slider(0.0, 2.0, step=0.1, value=0.5, show_value=True, label="allowed excess")
    mo.vstack([mo.md("# Share a transformer"), capacity, threshold])
    return capacity, threshold


@app.cell
def _(capacity, cmpg, threshold):
    result = cmpg.solve(cmpg.scenarios.charging(capacity=capacity.value, threshold=threshold.value))
    return (result,)


@app.cell
def _(mo, result):
    total, price = result.values.sum(), result.multipliers.max()
    mo.md(f"**{result.status.name}**: total value {total:.3f}, cost {result.costs[0]:.3f}, highest price {price:.3f}")
    return


@app.cell
def _(result):
    result.plot("schedule")
    return


@app.cell
def _(result):
    result.plot("loads")
    return


if __name__ == "__main__":
    app.run()
