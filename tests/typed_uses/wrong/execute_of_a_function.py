import numpy as np

from runtime import execute

execute(np.tanh, np.ones(3))  # wrong
