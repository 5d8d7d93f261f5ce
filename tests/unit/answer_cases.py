"""Tables, fits and the place at which the tests of answers ask."""

import synthetic_results
import synthetic_vanishing

from sqrtdk.report.setting import Setting
from sqrtdk.sampling import laws

MOMENTS = synthetic_results.moments()
SATURATION = synthetic_results.softmax_saturation(("gaussian",), (16, 64), (16, 64))
GRADIENTS = synthetic_results.gradient_magnitude(("gaussian",), (16, 64), (16, 64))
VANISHING = synthetic_vanishing.tables(("gaussian",), (16, 64), (16, 64), synthetic_results.SCALINGS)
FITS = laws.fit_variance_laws(MOMENTS, 64)
AT = Setting("gaussian", 64, 64, "1/sqrt(d_k)", "none")
VERDICTS = ("larger", "smaller", "level")
