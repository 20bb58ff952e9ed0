// A file of all that a world's proxies write to their access logs: "CLUSTER/NAMESPACE/POD LINE", as `kubectl logs
// --prefix` shows them, in order of virtual time.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/time.h"

namespace wavetank::sim {
class World;
}

namespace wavetank::scenario {

class AccessLogFile {
 public:
  // Follows `world`, which must not run any more when this is gone. The file has its name when Finish() says so; until
  // then its lines stand in PATH.partial. Errors say what to do about the path.
  static absl::StatusOr<std::unique_ptr<AccessLogFile>> Create(const std::string& path, sim::World& world);
  ~AccessLogFile();  // without Finish() nothing is left
  AccessLogFile(const AccessLogFile&) = delete;
  AccessLogFile& operator=(const AccessLogFile&) = delete;

  // Errors say what to do about the path; the file then keeps its partial name.
  absl::Status Finish();
  uint64_t lines() const { return lines_; }  // so far

 private:
  AccessLogFile(std::string path, sim::World& world);
  void Add(std::string_view pod, Time at, std::string_view text);
  void WriteUntil(Time now);

  const std::string path_, partial_;
  sim::World& world_;
  std::ofstream out_;
  bool finished_ = false;
  // Written ahead of the clock, as answers within a pod are.
  std::map<std::pair<Time, uint64_t>, std::string> ahead_;
  uint64_t lines_ = 0;
};

}  // namespace wavetank::scenario
