// What came before a dump, inferred backwards from it: a dump holds the state at its instant; when its objects came to
// be, their creation times say, and what changed before, the lines of logs. When something changes, and in which
// cluster, a mesh made of the logs says (skeleton.h); what it is, the dump: the last change of an object leads to what
// the dump holds. What stood there before it no source tells: the dump's object, changed in what the line is about, or
// something else of its kind stands in. Clusters of which there is no dump are as the logs make them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "import/evidence/evidence.h"
#include "import/kube/kube_evidence.h"
#include "import/skeleton/skeleton.h"

namespace wavetank::importing {

using ObjectKey = std::tuple<std::string, std::string, std::string, std::string>;  // cluster, kind, namespace, name
ObjectKey KeyOfObject(const KubeChange& change);

struct BeforeDump {
  // Of the first picture: take the place of what the dump holds, or are there besides.
  std::map<ObjectKey, KubeChange> stand_ins;
  std::set<ObjectKey> not_yet;      // of the first picture: come to be only later
  std::vector<KubeChange> changes;  // with their times
  std::vector<std::string> told;    // a line for each of them: when, what, and by which source
};

struct DumpedMesh {
  std::vector<const KubeChange*> objects;       // of dumps alone; none that a history tells of
  std::set<ObjectKey> told;                     // of which a history tells
  std::map<std::string, std::string> contexts;  // of dumps, by the clusters' names
  WallNs from = 0, to = 0;                      // what the evidence covers
};

// `logs`: as ChangesOfLogs() makes them.
BeforeDump InferBefore(const Evidence& evidence, const Skeleton& logs, const DumpedMesh& mesh);

}  // namespace wavetank::importing
