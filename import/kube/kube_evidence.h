// What API servers held and what was written to them: dumps, audit logs and recorded watches, as objects that a world
// may be told of.
//
// Every object passes record::Normalise() as it is read, so that data of Secrets, tokens and keys never get further
// unless the user asked to keep them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/json/packed_json.h"
#include "core/kube/object.h"
#include "import/evidence/evidence.h"
#include "nlohmann/json.hpp"

namespace wavetank::importing {

struct KubeChange {
  std::string cluster;  // its context: as the user named it, or the source's name
  WallNs at = kNoTime;  // none: of a dump, whenever that was
  bool deleted = false, created = false;
  // The input that tells a world of it (record::Normalise); null if deleted.
  std::string input_kind;
  nlohmann::json body;  // of a pod its outline alone: what an import looks at
  PackedJson packed;    // of a pod the whole body, as there are tens of thousands of them
  nlohmann::json Body() const { return packed.empty() ? body : packed.Unpack(); }
  // Of a remote Secret whose kubeconfigs someone had cut out: with some for the clusters that it names. Null otherwise.
  nlohmann::json with_kubeconfigs;
  std::string kind, ns, name;  // kind with its group: "EndpointSlice.discovery.k8s.io"
  Place place;
};

struct KubeEvidence {
  std::vector<KubeChange> state;    // of dumps: the last one told of each object stands
  std::vector<KubeChange> history;  // of audit logs and watches
  // Writes of which no object is told, as by audit events of level Metadata: neither body nor deleted.
  std::vector<KubeChange> untold;
  // Events (kubectl get events -o json): what components of Kubernetes said, and when.
  struct Event {
    std::string cluster, kind, ns, name, reason, message, component;
    WallNs at = kNoTime;
    int64_t count = 1;
    Place place;
  };
  std::vector<Event> events;
  // Objects of kinds that no mesh sees, by kind.
  std::map<std::string, uint64_t> unseen;

  bool keep_secrets = false;  // for ReadKubeFile()

  // What every cluster has and nobody deletes, by cluster and name: its UID tells clusters apart.
  std::map<std::pair<std::string, std::string>, std::pair<std::string, Place>> marks;
  // Two places that one cluster's objects are told to be of, and are not; what tells it.
  struct Mixed {
    std::string cluster, what;
    Place one, other;
  };
  std::optional<Mixed> mixed;  // the first

  bool empty() const { return state.empty() && history.empty(); }
};

// Whether a file is one of these, by its beginning.
enum class KubeFile : uint8_t {
  kNone,
  kObjects,  // Events among them, and KWOK's recordings
  kAudit,
  kAuditLines,
  kWatch,
  kSimKube,     // a trace of skctl
  kEventTable,  // `kubectl get events` without -o: it tells ages, not times
};
KubeFile KindOfKubeFile(std::string_view head);

// Writes of which no object is told, and a dump holds it: they become history, with the dump's object. Not where
// history tells of a later write, for the dump's is that one's. The others are counted. How many were found.
uint64_t TakeUntoldFromDumps(KubeEvidence& evidence, Refusals& refusals);

// Takes with_kubeconfigs where there are some: no log tells whether istiod could read what was there. How many.
uint64_t TakeSecretsForReadable(KubeEvidence& evidence);

// Reads a whole file. What cannot be read is counted, and the rest is read. O(text). Of audit events a line each some
// lines may be read at a time: `lines` came before.
void ReadKubeFile(KubeFile kind, std::string_view text, const std::string& cluster, const std::string& file,
                  KubeEvidence& out, Refusals& refusals, size_t lines = 0);

}  // namespace wavetank::importing
