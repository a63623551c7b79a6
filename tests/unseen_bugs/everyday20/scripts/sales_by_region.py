"""Report of machine sales by region, prices in cents."""
import csv
import io
from dataclasses import dataclass

import numpy as np

SALES = """\
region,model,units,unit_price
north,press,14,18250000
south,lathe,40,7430000
north,mill,95,9875000
west,press,21,18250000
south,mill,60,9875000
north,lathe,130,7430000
west,lathe,33,7430000
south,press,35,18250000
"""


@dataclass
class Sales:
    region: np.ndarray
    units: np.ndarray
    price: np.ndarray


def read_sales(text):
    rows = list(csv.DictReader(io.StringIO(text)))
    return Sales(
        region=np.array([r["region"] for r in rows]),
        units=np.array([r["units"] for r in rows]).astype(np.int32),
        price=np.array([r["unit_price"] for r in rows]).astype(np.int32),
    )


def by_region(sales):
    names, group = np.unique(sales.region, return_inverse=True)
    units = np.zeros(len(names), dtype=np.int32)
    revenue = np.zeros(len(names), dtype=np.int32)
    np.add.at(units, group, sales.units)
    np.add.at(revenue, group, sales.units * sales.price)
    return names, units, revenue


def main():
    names, units, revenue = by_region(read_sales(SALES))
    print(f"{'region':8s}{'units':>7s}{'revenue':>18s}")
    for n, u, r in zip(names, units, revenue):
        print(f"{n:8s}{u:7d}{r / 100:18,.2f}")
    print(f"best region: {names[revenue.argmax()]}")


if __name__ == "__main__":
    main()
