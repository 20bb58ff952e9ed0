#include "core/config/mesh/mesh_fields.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_split.h"
#include "core/base/assert.h"
#include "core/base/text/proto_json_name.h"
#include "core/config/mesh/mesh_fields_text.h"

namespace wavetank::config {
namespace {

using nlohmann::json;

struct FieldType {
  std::string_view message;  // empty: its value is not looked into
  bool is_map = false;       // of those
};
struct MessageFields {
  std::string_view name;
  std::map<std::string_view, FieldType> fields;
};
using Messages = std::map<std::string_view, MessageFields>;

std::vector<std::string_view> Split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(text.data(), text.size()), at, absl::SkipEmpty()))
    out.emplace_back(part.data(), part.size());
  return out;
}

// Lines and cells as the table's head says.
Messages ReadTable() {
  Messages out;
  for (const std::string_view line : Split(MeshFieldsText(), '\n')) {
    if (line.starts_with('#')) continue;
    const std::string_view name = line.substr(0, line.find('\t'));
    MessageFields& message = out[name];
    message.name = name;
    for (std::string_view cell : Split(line.substr(name.size() + 1), ' ')) {
      if (cell.starts_with('+')) cell.remove_prefix(1);
      const size_t equals = std::min(cell.find('='), cell.size());
      FieldType type{cell.substr(std::min(equals + 1, cell.size()))};
      type.is_map = type.message.starts_with('*');
      if (type.is_map) type.message.remove_prefix(1);
      message.fields.emplace(cell.substr(0, equals), type);
    }
  }
  return out;
}

struct Walk {
  const Messages& messages;
  std::string_view root;  // the document's message
  std::vector<UnknownMeshField>& out;
  std::vector<std::string> path = {};

  // One message, or a list of them.
  void Visit(std::string_view name, const json& value) {
    if (value.is_array()) {
      for (const json& item : value) Visit(name, item);
      return;
    }
    const auto found = messages.find(name);
    WAVETANK_ASSERT(found != messages.end());
    EachMember(value, [&](const std::string& key, const json& member) { Look(found->second, key, member); });
  }

  void Look(const MessageFields& message, const std::string& key, const json& member) {
    const auto field = message.fields.find(ProtoJsonName(key));
    if (field == message.fields.end()) {
      UnknownMeshField& unknown = out.emplace_back(UnknownMeshField{path, message.name, {}, {}, false});
      for (const auto& [known, type] : message.fields) {
        unknown.known.push_back(known);
        const auto below = messages.find(type.message);
        if (below != messages.end() && !type.is_map && below->second.fields.contains(ProtoJsonName(key)))
          unknown.elsewhere = known;
      }
      unknown.at_root = message.name != root && messages.at(root).fields.contains(ProtoJsonName(key));
      return;
    }
    const FieldType& type = field->second;
    if (type.message.empty()) return;
    if (!type.is_map) return Visit(type.message, member);
    EachMember(member, [&](const std::string&, const json& item) { Visit(type.message, item); });
  }

  // Fn(name, member), which `path` leads to meanwhile; of what is no object none.
  template <class Fn>
  void EachMember(const json& value, Fn fn) {
    if (!value.is_object()) return;
    for (const auto& [key, member] : value.items()) {
      path.push_back(key);
      fn(key, member);
      path.pop_back();
    }
  }
};

}  // namespace

std::vector<UnknownMeshField> UnknownMeshFields(std::string_view message, const json& document) {
  static const Messages* const messages = new Messages(ReadTable());
  std::vector<UnknownMeshField> out;
  Walk{*messages, message, out}.Visit(message, document);
  return out;
}

}  // namespace wavetank::config
