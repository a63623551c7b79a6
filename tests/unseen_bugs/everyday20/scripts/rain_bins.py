"""Rainfall by month: put hourly readings into bins with torch."""
import torch

MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]


def hourly_rain(seed=4):
    g = torch.Generator().manual_seed(seed)
    hours = 24 * sum(MONTH_DAYS)
    wet = torch.rand(hours, generator=g) < 0.12
    amount = torch.rand(hours, generator=g) * 4
    return torch.where(wet, amount, torch.zeros(()))


def month_index():
    ends = torch.tensor(MONTH_DAYS).cumsum(0) * 24
    hour = torch.arange(24 * sum(MONTH_DAYS))
    return torch.bucketize(hour, ends, right=True)


def monthly_totals(rain, month):
    """Sum in double, hand back what came in."""
    total = torch.zeros(12, dtype=torch.float64)
    total.index_add_(0, month, rain.double())
    return total.to(rain.dtype)


def classes(rain):
    edges = torch.tensor([0.1, 1.0, 2.5])
    kind = torch.bucketize(rain, edges)
    return torch.bincount(kind, minlength=4)


def main():
    rain = hourly_rain()
    month = month_index()
    totals = monthly_totals(rain, month)
    wet_hours = torch.bincount(month[rain > 0], minlength=12)
    for m in range(12):
        bar = "*" * int(totals[m] / 10)
        print(f"{m + 1:2d} {totals[m]:7.1f} mm in {wet_hours[m]:3d} h {bar}")
    dry, light, medium, heavy = classes(rain).tolist()
    print(f"dry {dry} light {light} medium {medium} heavy {heavy}")
    print(f"year {totals.sum():.1f} mm, mean month {totals.mean():.1f} mm")


if __name__ == "__main__":
    main()
