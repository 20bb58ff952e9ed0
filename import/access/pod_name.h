// Whose log a file is, by its path: the layouts of `istioctl bug-report`, kubectl cluster-info dump, must-gather, the
// kubelet's and the container runtime's folders, and files that are called after their pod.
#pragma once

#include <string>
#include <string_view>

#include "import/evidence/traffic.h"

namespace wavetank::importing {

struct LogOwner {
  PodName pod;
  std::string container;  // empty: not told
};

// Of a path with '/', as archives have it.
LogOwner OwnerOfLog(std::string_view path);

// What stands before a line or between lines, where one file has several pods' logs: kubectl's `--prefix` as Envelope
// found it ("POD/CONTAINER"), "CLUSTER/NAMESPACE/POD " as `wavetank run --access-log` writes, and kubectl cluster-info
// dump's "==== START logs for container C of pod NS/POD ====". False: it is no such line.
bool ReadDumpHeading(std::string_view line, LogOwner& owner, bool& begins);
bool TakeSlashPrefix(std::string_view& line, PodName& pod);

}  // namespace wavetank::importing
