#include "check/lint/silence.h"

#include <fstream>

#include "absl/strings/str_split.h"
#include "check/rules/rule.h"
#include "core/base/json_access.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

constexpr std::string_view kComment = "wavetank: silence ", kAnnotation = "galley.istio.io/analyze-suppress";

std::set<std::string, std::less<>> Codes(std::string_view text) {
  std::set<std::string, std::less<>> out;
  for (absl::string_view word :
       absl::StrSplit(absl::string_view(text.data(), text.size()), absl::ByAnyChar(", \t\r"), absl::SkipEmpty()))
    out.emplace(word.data(), word.size());
  return out;
}

struct Comment {
  int line = 0;
  bool above = false;  // nothing but comments and separators until the next object
  std::set<std::string, std::less<>> codes;
};

std::vector<Comment> CommentsOf(const std::string& file) {
  std::vector<Comment> out;
  std::ifstream in(file);
  std::string line;
  std::vector<size_t> open;
  for (int number = 1; std::getline(in, line); ++number) {
    const size_t start = line.find_first_not_of(" \t");
    const bool blank = start == std::string::npos || line[start] == '#' || line.starts_with("---");
    if (!blank) {
      // What stood above an object's first line stands above it; what stood above another line, within one.
      for (const size_t i : open) out[i].above = line[0] != ' ';
      open.clear();
    }
    const size_t hash = line.find('#');
    const size_t at = hash == std::string::npos ? hash : line.find(kComment, hash);
    if (at == std::string::npos) continue;
    if (blank) open.push_back(out.size());
    out.push_back({number, false, Codes(std::string_view(line).substr(at + kComment.size()))});
  }
  return out;
}

}  // namespace

absl::StatusOr<Silences> Silences::Read(const Mesh& mesh) {
  Silences out;
  std::map<std::string, std::set<int>> starts;  // lines of a file's objects
  for (const BroughtObject& b : mesh.brought()) starts[b.file].insert(b.line);
  for (const auto& [file, lines] : starts) {
    for (const Comment& comment : CommentsOf(file)) {
      for (const std::string& code : comment.codes) {
        if (code == "*" || FindRule(code) != nullptr) continue;
        return absl::InvalidArgumentError(
            fmt::format("{}:{}: silences {}, which is the code of no rule; `wavetank check --rules` lists them", file,
                        comment.line, code));
      }
      auto object = lines.upper_bound(comment.line);
      if (!(comment.above && object != lines.end()) && object != lines.begin()) --object;
      if (object == lines.end()) continue;
      out.by_place_[{file, *object}].insert(comment.codes.begin(), comment.codes.end());
    }
  }
  for (const BroughtObject& b : mesh.brought()) {
    const std::string text = Text(At(b.object, {"metadata", "annotations"}), kAnnotation);
    if (!text.empty()) out.by_place_[{b.file, b.line}].merge(Codes(text));
  }
  return out;
}

bool Silences::Covers(const Place& place, std::string_view code) const {
  const auto it = by_place_.find({place.file, place.line});
  return it != by_place_.end() && (it->second.contains("*") || it->second.contains(code));
}

}  // namespace wavetank::check
