// Fits parameters to measurements: least squares of relative errors, no parameter below zero.
#pragma once

#include <string>
#include <vector>

#include "capacity/model/cost_model.h"
#include "capacity/model/measurements.h"

namespace wavetank::capacity {

// `values` x so that rows * x is as near to `wanted` as it gets, each row's error in parts of what is wanted. By
// coordinate descent, which needs no library and gives the same bits everywhere.
std::vector<double> LeastSquares(const std::vector<std::vector<double>>& rows, const std::vector<double>& wanted);

// Processor time, resident set and bytes, from `start` on: its other parameters stay. `source` is written beside what
// is fitted.
Parameters Fit(const std::vector<Measured>& rows, const Parameters& start, const std::string& source);

}  // namespace wavetank::capacity
