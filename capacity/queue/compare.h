// Predicted against measured, row by row.
#pragma once

#include <vector>

#include "capacity/model/cost_model.h"
#include "capacity/model/measurements.h"

namespace wavetank::capacity {

struct Predicted {
  double cpu_ms = 0, rss_mb = 0, kilobytes = 0, half_ms = 0, most_ms = 0;
};

// As the measuring bench would have seen it, whose clients share the processors.
Predicted Predict(const CostModel& model, const Situation& situation);

struct Comparison {
  Measured measured;
  Predicted predicted;
};
std::vector<Comparison> Compare(const CostModel& model, const std::vector<Measured>& rows);

// Of one kind of figure (cpu, rss, half, most): how many rows there are, and how far off they are.
struct Error {
  int rows = 0, within = 0;  // 20 %
  double mean = 0;           // of the absolute relative errors
  double worst = 0;
};
Error ErrorOf(const std::vector<Comparison>& rows, double Predicted::*predicted, double Measured::*measured);

}  // namespace wavetank::capacity
