"""Examples of ``gradops.scipy.spatial``."""

ROWS = """
see gradops.scipy.spatial.distance.minkowski
minkowski_distance([4.0, 4.0], [1.0, 0.0], p) at p = 2.0 -> -0.816773
minkowski_distance_p(x, [1.0, 0.0]) at x = np.array([4.0, 4.0]) -> [6. 8.]
distance_matrix(x, [[0.0, 0.0], [0.0, 4.0]])[0, 0] at x = np.array([[3.0, 4.0]]) -> [[0.6 0.8]]

see gradops.scipy.linalg.orthogonal_procrustes
geometric_slerp([1.0, 0.0], [0.0, 1.0], t) by t = 0.25 -> [-0.601118  1.451227]
procrustes([[0, 0], [1, 0], [0, 2]], x)[2] at x = np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, 2.0]]) -> [[-0.05   -0.0875]
     [-0.0125  0.1   ]
     [ 0.0625 -0.0125]]
"""
