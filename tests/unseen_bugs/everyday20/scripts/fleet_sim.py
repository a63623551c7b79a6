"""Simulate a small fleet of delivery carts for twenty minutes in steps of 50 ms."""
import numpy as np

DT = 0.05
STEPS = 24_000


class Fleet:
    def __init__(self, odometer_m, target_speed):
        self.odometer = np.array(odometer_m, dtype=np.float32)
        self.target = np.array(target_speed, dtype=np.float32)
        self.speed = np.zeros_like(self.target)
        self.battery = np.full(len(self.target), 100.0)

    def step(self, dt):
        self.speed += (self.target - self.speed) * 0.5 * dt
        self.odometer += self.speed * dt
        self.battery -= (0.001 + 0.0004 * self.speed ** 2) * dt


def run(fleet, steps=STEPS, dt=DT):
    start = fleet.odometer.copy()
    history = []
    for i in range(steps):
        fleet.step(dt)
        if i % 6000 == 0:
            history.append((i * dt, fleet.battery.min()))
    return fleet.odometer - start, history


def main():
    # metres on the clock this morning, cruising speed in m/s
    fleet = Fleet([612_000.0, 655_360.0, 1_200.0], [0.25, 0.5, 1.5])
    driven, history = run(fleet)
    for t, b in history:
        print(f"t={t:7.1f}s weakest battery {b:6.2f} %")
    for k, (d, b) in enumerate(zip(driven, fleet.battery)):
        print(f"cart {k}: drove {d:8.1f} m, battery {b:5.1f} %")


if __name__ == "__main__":
    main()
