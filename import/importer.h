// The whole of an import: sources in, evidence out.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "import/evidence/evidence.h"
#include "import/evidence/traffic.h"
#include "import/kube/kube_evidence.h"
#include "import/sources/source.h"

namespace wavetank::importing {

struct ImportOptions {
  std::vector<std::string> sources;
  // What is added to all times of the files whose path begins with the name, or that were given as it.
  std::vector<std::pair<std::string, WallNs>> skews;
  // Which cluster the objects of a file or a folder are of, by its path. Others are of a cluster that is called after
  // the source.
  std::vector<std::pair<std::string, std::string>> clusters;  // name, path
  // Formats of access logs besides Istio's and Envoy's own, in Envoy's command language.
  std::vector<std::string> access_formats;
  // Objects keep the Secrets, tokens and passwords that record --keep-secrets keeps.
  bool keep_secrets = false;
  SourceLimits limits;
  TellOfWaiting waits;
};

struct Imported {
  Evidence evidence;
  KubeEvidence kube;
  Traffic traffic;

  bool empty() const { return evidence.runs.empty() && evidence.claims.empty() && kube.empty() && traffic.empty(); }
};

// NotFound, PermissionDenied: a source is not there. InvalidArgument: a format of access logs is none. Anything else
// that is wrong with them is in Evidence::refusals.
absl::StatusOr<Imported> Import(const ImportOptions& options);

// Which other sources would answer more, and what: a line each.
std::vector<std::string> WhatIsMissing(const Imported& imported);

// One input for what several replicas have seen, and everything in order of time. Import() has done so.
void Align(Evidence& evidence);

}  // namespace wavetank::importing
