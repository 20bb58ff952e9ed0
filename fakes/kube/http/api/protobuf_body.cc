#include "fakes/kube/http/api/protobuf_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "core/base/json_text.h"
#include "core/base/text/json_brackets.h"
#include "core/kube/time_format.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

constexpr std::string_view kMagic("k8s\0", 4);
constexpr int kDeepest = 64;

absl::Status Torn() { return absl::InvalidArgumentError("the object provided is no valid protobuf"); }

absl::Status TooDeep() {
  return absl::InvalidArgumentError(fmt::format("the object provided is nested deeper than {} levels", kDeepest));
}

// One field of a message.
struct WireField {
  uint32_t number = 0;
  int wire_type = 0;
  uint64_t value = 0;      // of wire types 0, 1 and 5
  std::string_view bytes;  // of wire type 2
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  // False at the end, or where the bytes make no sense: then torn() is true.
  bool Next(WireField* out) {
    if (rest_.empty() || torn_) return false;
    uint64_t tag = 0, size = 0;
    if (!Varint(&tag)) return false;
    out->number = static_cast<uint32_t>(tag >> 3);
    out->wire_type = static_cast<int>(tag & 7);
    switch (out->wire_type) {
      case 0:
        return Varint(&out->value);
      case 1:
        return Fixed(8, &out->value);
      case 2:
        if (!Varint(&size)) return false;
        if (size > rest_.size()) return Tear();
        out->bytes = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return true;
      case 5:
        return Fixed(4, &out->value);
      default:
        return Tear();
    }
  }
  bool torn() const { return torn_; }

  bool Varint(uint64_t* out) {
    *out = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      *out |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return Tear();
  }
  bool empty() const { return rest_.empty(); }

 private:
  bool Tear() {
    torn_ = true;
    return false;
  }
  bool Fixed(size_t size, uint64_t* out) {
    if (rest_.size() < size) return Tear();
    *out = 0;
    for (size_t i = 0; i < size; ++i) *out |= static_cast<uint64_t>(static_cast<uint8_t>(rest_[i])) << (8 * i);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
  bool torn_ = false;
};

class ProtobufDecoder {
 public:
  // Of a message.
  absl::StatusOr<json> Object(const ApiType& type, std::string_view bytes, int depth) {
    json out = json::object();
    const absl::Status status = Into(type, {}, 0, bytes, depth, &out);
    if (!status.ok()) return status;
    return out;
  }

 private:
  using Numbers = std::array<uint16_t, 3>;

  // `within`: of how many messages that JSON does not show this is the innermost, and their numbers.
  absl::Status Into(const ApiType& type, Numbers place, size_t within, std::string_view bytes, int depth, json* out) {
    if (depth > kDeepest) return TooDeep();
    WireReader reader(bytes);
    for (WireField wire; reader.Next(&wire);) {
      if (wire.number == 0 || wire.number > UINT16_MAX || within >= place.size()) continue;
      place[within] = static_cast<uint16_t>(wire.number);
      bool hidden = false;
      for (const ApiField& field : type.fields) {
        if (field.numbers == place) {
          if (absl::Status status = Add(field, wire, depth, out); !status.ok()) return status;
        } else if (within + 1 < place.size() && field.numbers[within + 1] != 0 &&
                   std::equal(place.begin(), place.begin() + static_cast<std::ptrdiff_t>(within) + 1,
                              field.numbers.begin())) {
          hidden = true;
        }
      }
      if (!hidden || wire.wire_type != 2) continue;
      if (absl::Status status = Into(type, place, within + 1, wire.bytes, depth + 1, out); !status.ok()) return status;
    }
    return reader.torn() ? Torn() : absl::OkStatus();
  }

  absl::Status Add(const ApiField& field, const WireField& wire, int depth, json* out) {
    const std::string name(field.name);
    if (field.type.shape == FieldShape::kList && !field.type.or_anything)
      return Append(*field.type.of, wire, depth, &(*out)[name]);
    if (field.type.shape == FieldShape::kMap && !field.type.or_anything)
      return Insert(*field.type.of, wire, depth, &(*out)[name]);
    absl::StatusOr<json> value = Value(field.type, wire, depth);
    if (!value.ok()) return value.status();
    // As Go's omitempty: of what is no pointer, the zero is never written.
    const bool zero =
        value->is_null() ||
        (!field.keeps_zero && (value->empty() || *value == "" || *value == 0 || *value == 0.0 || *value == false));
    if (!zero) (*out)[name] = *std::move(value);
    return absl::OkStatus();
  }

  absl::Status Append(const FieldType& type, const WireField& wire, int depth, json* out) {
    if (out->is_null()) *out = json::array();
    if (type.shape == FieldShape::kInteger && wire.wire_type == 2) {  // packed
      WireReader packed(wire.bytes);
      while (!packed.empty()) {
        uint64_t number = 0;
        if (!packed.Varint(&number)) return Torn();
        out->push_back(static_cast<int64_t>(number));
      }
      return absl::OkStatus();
    }
    absl::StatusOr<json> value = Value(type, wire, depth);
    if (!value.ok()) return value.status();
    out->push_back(*std::move(value));
    return absl::OkStatus();
  }

  // An entry {key = 1, value = 2}.
  absl::Status Insert(const FieldType& type, const WireField& entry, int depth, json* out) {
    if (entry.wire_type != 2) return Torn();
    if (out->is_null()) *out = json::object();
    std::string key;
    WireField value_field;
    value_field.wire_type = WireTypeOf(type);  // a value that is left out is the zero
    WireReader reader(entry.bytes);
    for (WireField wire; reader.Next(&wire);) {
      if (wire.number == 1) key = std::string(wire.bytes);
      if (wire.number == 2) value_field = wire;
    }
    if (reader.torn()) return Torn();
    json value = json::array();
    if (type.shape == FieldShape::kList) {  // lists in a mapping are messages of their own: {items = 1}
      if (value_field.wire_type != 2) return Torn();
      WireReader items(value_field.bytes);
      for (WireField wire; items.Next(&wire);) {
        if (wire.number != 1) continue;
        if (absl::Status status = Append(*type.of, wire, depth + 1, &value); !status.ok()) return status;
      }
      if (items.torn()) return Torn();
    } else {
      absl::StatusOr<json> decoded = Value(type, value_field, depth);
      if (!decoded.ok()) return decoded.status();
      value = *std::move(decoded);
    }
    (*out)[key] = std::move(value);
    return absl::OkStatus();
  }

  // Null: there is none.
  absl::StatusOr<json> Value(const FieldType& type, const WireField& wire, int depth) {
    if (wire.wire_type != WireTypeOf(type)) return Torn();
    switch (type.or_anything ? FieldShape::kAnything : type.shape) {
      case FieldShape::kString:
        return json(std::string(wire.bytes));
      case FieldShape::kBytes:
        return json(absl::Base64Escape(absl::string_view(wire.bytes.data(), wire.bytes.size())));
      case FieldShape::kInteger:
        return json(static_cast<int64_t>(wire.value));
      case FieldShape::kBoolean:
        return json(wire.value != 0);
      case FieldShape::kNumber:
        return json(std::bit_cast<double>(wire.value));
      case FieldShape::kTime:
      case FieldShape::kMicroTime: {
        // Time {seconds = 1, nanos = 2}; nothing at all is the zero.
        std::array<uint64_t, 3> part{};
        if (wire.bytes.empty()) return json();
        if (absl::Status status = Numbers3(wire.bytes, &part); !status.ok()) return status;
        std::string text = kube::FormatRfc3339(static_cast<int64_t>(part[1]));
        if (type.shape == FieldShape::kMicroTime)
          text.insert(text.size() - 1, fmt::format(".{:06}", part[2] / 1000 % 1'000'000));
        return json(text);
      }
      case FieldShape::kIntegerOrString: {
        // IntOrString {type = 1 (0: number), intVal = 2, strVal = 3}.
        std::array<uint64_t, 3> part{};
        std::string_view text;
        if (absl::Status status = Numbers3(wire.bytes, &part, &text); !status.ok()) return status;
        return part[1] == 0 ? json(static_cast<int64_t>(part[2])) : json(std::string(text));
      }
      case FieldShape::kQuantity:  // Quantity {string = 1}
      case FieldShape::kObject:    // RawExtension, FieldsV1, JSON {raw = 1}
      case FieldShape::kAnything: {
        std::string_view bytes;
        WireReader reader(wire.bytes);
        for (WireField field; reader.Next(&field);) {
          if (field.number == 1 && field.wire_type == 2) bytes = field.bytes;
        }
        if (reader.torn()) return Torn();
        if (type.shape == FieldShape::kQuantity) return json(std::string(bytes));
        if (bytes.empty()) return json::object();
        if (DeeperThan(bytes, kDeepest)) return TooDeep();
        json parsed = ParseJson(bytes);
        if (parsed.is_discarded()) return Torn();
        return parsed;
      }
      case FieldShape::kType: {
        const ApiType* inner = FindApiType(type.name);
        if (inner == nullptr) return Torn();
        return Object(*inner, wire.bytes, depth + 1);
      }
      case FieldShape::kList:
      case FieldShape::kMap:
        break;  // lists of lists have no encoding
    }
    return Torn();
  }

  static int WireTypeOf(const FieldType& type) {
    if (type.or_anything) return 2;
    if (type.shape == FieldShape::kInteger || type.shape == FieldShape::kBoolean) return 0;
    return type.shape == FieldShape::kNumber ? 1 : 2;
  }

  // Fields 1 and 2 as numbers, 3 as text.
  static absl::Status Numbers3(std::string_view bytes, std::array<uint64_t, 3>* numbers,
                               std::string_view* text = nullptr) {
    WireReader reader(bytes);
    for (WireField wire; reader.Next(&wire);) {
      if (wire.wire_type == 0 && wire.number < numbers->size()) (*numbers)[wire.number] = wire.value;
      if (wire.wire_type == 2 && wire.number == 3 && text != nullptr) *text = wire.bytes;
    }
    return reader.torn() ? Torn() : absl::OkStatus();
  }
};

}  // namespace

bool IsProtobufBody(std::string_view body) { return body.starts_with(kMagic); }

absl::StatusOr<json> DecodeProtobufBody(
    std::string_view body,
    const std::function<const ApiType*(std::string_view api_version, std::string_view kind)>& type_of) {
  if (!IsProtobufBody(body)) return Torn();
  // Unknown {typeMeta = 1: {apiVersion = 1, kind = 2}, raw = 2, contentEncoding = 3, contentType = 4}.
  std::string api_version, kind;
  std::string_view raw;
  WireReader envelope(body.substr(kMagic.size()));
  for (WireField wire; envelope.Next(&wire);) {
    if (wire.wire_type != 2) continue;
    if (wire.number == 2) raw = wire.bytes;
    if (wire.number != 1) continue;
    WireReader meta(wire.bytes);
    for (WireField field; meta.Next(&field);) {
      if (field.number == 1) api_version = std::string(field.bytes);
      if (field.number == 2) kind = std::string(field.bytes);
    }
    if (meta.torn()) return Torn();
  }
  if (envelope.torn()) return Torn();
  const ApiType* type = type_of(api_version, kind);
  if (type == nullptr) {
    return absl::InvalidArgumentError("an object of this kind is not read as protobuf here: send it as JSON");
  }
  absl::StatusOr<json> object = ProtobufDecoder().Object(*type, raw, 0);
  if (!object.ok()) return object;
  (*object)["apiVersion"] = api_version;
  (*object)["kind"] = kind;
  try {
    object->dump();  // dump: refuses text that is not UTF-8, which JSON cannot hold
  } catch (const json::exception&) {
    return Torn();
  }
  return object;
}

}  // namespace wavetank::fakekube::http
