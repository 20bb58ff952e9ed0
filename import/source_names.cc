#include "import/source_names.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

namespace wavetank::importing {
namespace {

namespace fs = std::filesystem;

std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// Without "./" and "a/.."; from the root on, so that two ways to say it are one.
std::string Whole(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  return WithoutSlash((error ? fs::path(path) : absolute).lexically_normal().string());
}

// The last `parts` of a path.
std::string_view Tail(std::string_view path, size_t parts) {
  size_t at = path.size();
  for (size_t i = 0; i < parts && at != path.npos && at > 0; ++i) at = path.rfind('/', at - 1);
  return at == path.npos || at == 0 ? path : path.substr(at + 1);
}
std::string_view Above(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? std::string_view() : path.substr(0, slash);
}

bool Digits(std::string_view text, size_t at, size_t count) {
  return at + count <= text.size() && text.find_first_not_of("0123456789", at) >= at + count;
}

// Of a date, and what may follow it: 20240506, 2024-05-06T07-08-09.123, 20240506-070809, 20240506-1715000000.
bool IsDate(std::string_view text) {
  if (!Digits(text, 0, 4) || (!text.starts_with("19") && !text.starts_with("20"))) return false;
  size_t at = 4;
  for (int part = 0; part < 2; ++part) {
    if (at < text.size() && (text[at] == '-' || text[at] == '.' || text[at] == '_')) ++at;
    if (!Digits(text, at, 2)) return false;
    at += 2;
  }
  return text.find_first_not_of("0123456789-_.:TZ", at) == text.npos;
}

}  // namespace

std::string ReplicaOf(std::string name) {
  bool cut = true;
  while (cut) {
    cut = false;
    for (const std::string_view suffix : {".log", ".txt", ".gz", "-previous", "_previous", ".previous", ".old"}) {
      if (name.size() <= suffix.size() || !name.ends_with(suffix)) continue;
      name.resize(name.size() - suffix.size());
      cut = true;
    }
    const size_t dot = name.rfind('.');
    if (dot != name.npos && dot + 1 < name.size() && dot > 0 && name.size() - dot <= 12 &&
        name.find_first_not_of("0123456789-", dot + 1) == name.npos) {
      name.resize(dot);
      cut = true;
    }
    for (size_t at = name.find_first_of("-_.", 1); at != name.npos; at = name.find_first_of("-_.", at + 1)) {
      if (name[at - 1] == '/' || !IsDate(std::string_view(name).substr(at + 1))) continue;
      name.resize(at);
      cut = true;
      break;
    }
  }
  return name;
}

std::string PathOf(const SourceFile& file) {
  const bool single = file.source == file.name || file.source.ends_with("/" + file.name);
  return single ? file.source : file.source + "/" + file.name;
}

SourceNames::SourceNames(const std::vector<std::string>& sources) {
  std::vector<std::string> paths;
  for (const std::string& source : sources) paths.push_back(source == "-" ? source : Whole(source));
  for (size_t i = 0; i < paths.size(); ++i) {
    const auto clashes = [&](size_t parts) {
      const std::string mine = ReplicaOf(std::string(Tail(paths[i], parts)));
      return std::any_of(paths.begin(), paths.end(), [&](const std::string& other) {
        return Above(other) != Above(paths[i]) && ReplicaOf(std::string(Tail(other, parts))) == mine;
      });
    };
    size_t parts = 1;
    while (clashes(parts) && Tail(paths[i], parts).size() < paths[i].size()) ++parts;
    labels_[sources[i]] = Tail(paths[i], parts);
  }
}

std::string SourceNames::Shown(const SourceFile& file) const {
  const auto it = labels_.find(file.source);
  if (labels_.size() < 2 || it == labels_.end() || file.source == "-") return file.name;
  const std::string& label = it->second;
  // A single file, perhaps packed, is called as its source.
  const bool single = file.name.find('/') == file.name.npos && Tail(label, 1).starts_with(file.name);
  if (!single) return label + "/" + file.name;
  return Above(label).empty() ? file.name : std::string(Above(label)) + "/" + file.name;
}

std::string SourceNames::ClusterOf(const std::string& source) const {
  const auto it = labels_.find(source);
  std::string name = ReplicaOf(it == labels_.end() ? std::string(Tail(WithoutSlash(source), 1)) : it->second);
  std::replace(name.begin(), name.end(), '/', '-');
  return name;
}

std::optional<size_t> NamedPaths::Closest(const SourceFile& file) {
  std::optional<size_t> closest;
  size_t longest = 0;
  const std::string source = Whole(file.source), within = source + "/" + file.name;
  const auto under = [](std::string_view path, std::string_view of) {
    return path.starts_with(of) && (path.size() == of.size() || path[of.size()] == '/');
  };
  for (size_t i = 0; i < paths_.size(); ++i) {
    const std::string inside = WithoutSlash(paths_[i].text), whole = Whole(paths_[i].text);
    size_t length = 0;
    if (file.source == paths_[i].text || under(within, whole)) length = whole.size();
    if (under(file.name, inside)) length = std::max(length, source.size() + 1 + inside.size());
    if (length == 0) continue;
    paths_[i].used = true;
    if (length > longest) longest = length, closest = i;
  }
  return closest;
}

std::vector<size_t> NamedPaths::Unused() const {
  std::vector<size_t> out;
  for (size_t i = 0; i < paths_.size(); ++i) {
    if (!paths_[i].used) out.push_back(i);
  }
  return out;
}

}  // namespace wavetank::importing
