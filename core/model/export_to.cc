#include "core/model/export_to.h"

namespace wavetank::pilot {

ExportTo ParseExportTo(const std::vector<std::string>& targets) {
  ExportTo out;
  for (const std::string& target : targets) {
    if (target == "*") {
      out.is_public = true;
    } else if (target == ".") {
      out.is_private = true;
    } else if (target == "~") {
      out.is_none = true;
    } else {
      out.namespaces.insert(target);
    }
  }
  return out;
}

}  // namespace wavetank::pilot
