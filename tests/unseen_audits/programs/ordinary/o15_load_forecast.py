"""Electric load of a town: regression on calendar and temperature, forecast, tariff, battery."""
import numpy as np

HOURS = 24


def make_inputs():
    rng = np.random.default_rng(1515)
    n = 24 * 42
    time = np.datetime64("2023-01-09T00") + np.arange(n)
    hour = np.arange(n) % HOURS
    weekend = (np.arange(n) // HOURS) % 7 >= 5
    temp = -1.0 + 4.0 * np.sin((hour - 9) / 24 * 2 * np.pi) + np.cumsum(rng.normal(0, 0.15, n))
    shape = 21.0 + 6.0 * np.sin((hour - 8) / 24 * 2 * np.pi) + 2.0 * np.cos(hour / 12 * 2 * np.pi)
    load = shape * np.where(weekend, 0.86, 1.0) - 0.35 * temp + rng.normal(0, 0.5, n)
    solar = np.clip(9.0 * np.sin((hour - 7) / 10 * np.pi), 0, None) * (np.abs(hour - 12) <= 5)
    solar = solar * rng.uniform(0.3, 1.0, n)
    holidays = np.array(["2023-02-06", "2023-02-14"], dtype="M8[D]")
    return time, load.round(3), temp.astype(np.float32), solar.astype(np.float32), holidays


def calendar(time, holidays):
    day = time.astype("M8[D]")
    hour = (time - day).astype(np.int64)
    business = np.is_busday(day, holidays=holidays)
    return day, hour, business


def design_matrix(hour, business, temp, harmonics=3):
    angle = 2.0 * np.pi * hour / HOURS
    columns = [np.ones(hour.size), business.astype(np.float64)]
    for k in range(1, harmonics + 1):
        columns.extend([np.cos(k * angle), np.sin(k * angle)])
    heating = np.clip(12.0 - temp.astype(np.float64), 0.0, None)
    columns.extend([heating, heating * business])
    return np.column_stack(columns)


def ridge(design, target, penalty=1e-3):
    gram = design.T @ design
    gram[np.diag_indices_from(gram)] += penalty
    return np.linalg.solve(gram, design.T @ target)


def scores(actual, predicted):
    error = predicted - actual
    return {
        "mae": float(np.abs(error).mean()),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "mape": float(100.0 * np.mean(np.abs(error) / actual)),
        "bias": float(error.mean()),
    }


def residual_autocorrelation(residual, lags=6):
    r = residual - residual.mean()
    full = np.correlate(r, r, mode="full")[r.size - 1:]
    return full[1:lags + 1] / full[0]


def cost_in_cents(load_mwh, hour, business):
    """Day and night tariff; energy in whole kWh, prices in cents."""
    kwh = np.rint(load_mwh * 1000.0).astype(np.int64)
    price = np.where(business & (hour >= 7) & (hour < 21), 24, 17)
    return kwh * price


class Battery:
    def __init__(self, capacity=12.0, power=3.0, efficiency=0.92):
        self.capacity = capacity
        self.power = power
        self.efficiency = efficiency

    def shave(self, load, ceiling):
        """Discharge above the ceiling, charge below it."""
        state = self.capacity / 2.0
        grid = np.empty_like(load)
        states = np.empty_like(load)
        for i, need in enumerate(load):
            if need > ceiling:
                out = min(need - ceiling, self.power, state)
                state -= out
                grid[i] = need - out
            else:
                room = (self.capacity - state) / self.efficiency
                extra = min(ceiling - need, self.power, room)
                state += extra * self.efficiency
                grid[i] = need + extra
            states[i] = state
        return grid, states


def run(time, load, temp, solar, holidays):
    day, hour, business = calendar(time, holidays)
    design = design_matrix(hour, business, temp)
    train = day < day[-1] - 6
    coef = ridge(design[train], load[train])
    fitted = design @ coef
    quality = scores(load[~train], fitted[~train])
    acf = residual_autocorrelation(load[train] - fitted[train])
    net = load - solar
    grid, states = Battery().shave(net[~train], float(np.quantile(net, 0.9)))
    cents = cost_in_cents(load, hour, business)
    weekly = np.add.reduceat(cents, np.arange(0, cents.size, 7 * HOURS))
    profile = load.reshape(-1, HOURS).mean(axis=0)
    factor = load.mean() / load.max()
    print("MAE %(mae).3f MWh, RMSE %(rmse).3f MWh, MAPE %(mape).2f %%" % quality)
    print(f"cost {cents.sum() / 100:,.2f}, load factor {factor:.4f}, peak net {net.max():.3f} to {grid.max():.3f}")
    np.savez("forecast.npz", fitted=fitted[~train], grid=grid)
    return {
        "coef": coef, "quality": quality, "acf": acf, "weekly_cents": weekly, "profile": profile,
        "grid": grid, "state": states, "business_days": int(np.unique(day[business]).size),
        "duration_curve": np.sort(load)[::-1][::100], "solar_total": float(solar.sum(dtype=np.float64)),
    }
