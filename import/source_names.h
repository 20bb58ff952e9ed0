// What is called how where there are several sources, and which files an option names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "import/sources/source.h"

namespace wavetank::importing {

// "a/istiod-1.log.2", "a/istiod-1.log-20240506" and "a/istiod-1.log" are of one process, which is called "a/istiod-1".
// Rotations of lumberjack (istiod's own --log_rotate: NAME-2006-01-02T15-04-05.000.log), logrotate and kubelet.
std::string ReplicaOf(std::string name);

// With the folders above it, which say whose it is.
std::string PathOf(const SourceFile& file);

// Two clusters' istiod.log, or dump.json, are two files: as much of their sources' paths as tells them apart belongs to
// their names. What lies in one folder is not told apart, since that is how a rotation leaves a log.
class SourceNames {
 public:
  explicit SourceNames(const std::vector<std::string>& sources);
  // Of a file, for people, and for what belongs to one process.
  std::string Shown(const SourceFile& file) const;
  // Of the cluster that a source is of, if nothing else says it.
  std::string ClusterOf(const std::string& source) const;

 private:
  std::map<std::string, std::string> labels_;  // by source
};

// Options that name a source, a folder above it or in it, or a file in it. Of several that name one file the closest
// counts.
class NamedPaths {
 public:
  void Add(const std::string& path) { paths_.push_back({path}); }
  // Its index, in the order of Add(). Nothing: none names the file.
  std::optional<size_t> Closest(const SourceFile& file);
  // Those that named no file at all.
  std::vector<size_t> Unused() const;

 private:
  struct Path {
    std::string text;
    bool used = false;
  };
  std::vector<Path> paths_;
};

}  // namespace wavetank::importing
