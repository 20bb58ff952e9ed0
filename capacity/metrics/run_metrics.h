// The file of `run --metrics`.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/base/time.h"

namespace wavetank::scenario {
struct RunOptions;
}

namespace wavetank::capacity {

class RunMetrics {
 public:
  // InvalidArgument: `interval` is none.
  static absl::Status Check(const std::string& interval);

  explicit RunMetrics(const std::string& interval);
  ~RunMetrics();
  // Before the run.
  void Attach(scenario::RunOptions* options);
  // After it. Unavailable: the file cannot be written.
  absl::Status Write(const std::string& path) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace wavetank::capacity
