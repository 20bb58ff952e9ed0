#include "fakes/kube/objects/manifest_folders.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

#include "core/base/bounds.h"
#include "core/base/text/read_up_to.h"
#include "fmt/format.h"

namespace wavetank::fakekube {
namespace {

namespace fs = std::filesystem;

bool HoldsAnObject(const fs::path& file) {
  const std::string extension = file.extension().string();
  if (extension != ".yaml" && extension != ".yml" && extension != ".json") return false;
  std::ifstream in(file, std::ios::binary);
  const std::string text = ReadUpTo(in, bounds::kManifestBytes);
  return text.find("apiVersion") != std::string::npos && text.find("kind") != std::string::npos;
}

}  // namespace

std::vector<std::string> FoldersLeftOut(const std::string& path) {
  std::set<std::string> out;
  std::error_code error;
  if (!fs::is_directory(path, error)) return {};
  // Links are not followed, so that there is an end.
  for (fs::recursive_directory_iterator at(path, fs::directory_options::skip_permission_denied, error), end;
       !error && at != end; at.increment(error)) {
    const bool folder = at->is_directory(error);
    if (folder && at->path().filename().string().starts_with('.')) at.disable_recursion_pending();
    if (folder || at.depth() == 0) continue;
    std::string parent = at->path().parent_path().string();
    if (!out.contains(parent) && HoldsAnObject(at->path())) out.insert(std::move(parent));
  }
  return {out.begin(), out.end()};
}

std::string NameFoldersLeftOut(const std::string& path) {
  const std::vector<std::string> all = FoldersLeftOut(path);
  if (all.empty()) return "";
  return all.size() == 1 ? all.front() : fmt::format("{} and {} more", all.front(), all.size() - 1);
}

}  // namespace wavetank::fakekube
