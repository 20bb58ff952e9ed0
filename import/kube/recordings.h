// Recordings of clusters that other simulators make: traces of SimKube (skctl export) and of KWOK (kwokctl snapshot
// record).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "import/evidence/evidence.h"
#include "nlohmann/json.hpp"

namespace wavetank::importing {

// Of one object: what it was written as, or that it was deleted.
struct RecordedWrite {
  WallNs at = kNoTime;
  bool deleted = false, created = false;
  const nlohmann::json& object;
};
using OnWrite = std::function<void(const RecordedWrite& write)>;

// By its first bytes: MessagePack of a SimKube trace, which is a list of its fields or a map of them.
bool LooksLikeSimKubeTrace(std::string_view head);
// What is no such trace is counted.
void ReadSimKubeTrace(std::string_view bytes, const std::string& file, Refusals& refusals, const OnWrite& each);

// A KWOK recording: documents of kind ResourcePatch behind the objects that were there. Its times count from the
// recording's beginning, which no document tells: it is taken to be the latest creation among those objects.
class KwokRecording {
 public:
  static bool Is(const nlohmann::json& document);
  // An object that was there; at once `each` is told of none.
  void Add(const nlohmann::json& object);
  void Patch(const nlohmann::json& document, const Place& place, Refusals& refusals, const OnWrite& each);

 private:
  WallNs begins_ = kNoTime;
  std::map<std::string, nlohmann::json> objects_;  // by group, resource, namespace and name
};

}  // namespace wavetank::importing
