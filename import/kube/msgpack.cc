#include "import/kube/msgpack.h"

#include <bit>
#include <cstdint>
#include <string>

#include "core/base/json_text.h"

namespace wavetank::importing {
namespace {

using nlohmann::json;

// The specification of MessagePack, "Formats".
class MsgPackReader {
 public:
  explicit MsgPackReader(std::string_view bytes) : rest_(bytes) {}

  bool Value(json& out, int depth) {
    constexpr int kDeepest = 64;
    if (rest_.empty() || depth > kDeepest) return false;
    const auto tag = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    if (tag <= 0x7f) return Put(out, json(tag));
    if (tag <= 0x8f) return Map(out, tag & 0x0f, depth);
    if (tag <= 0x9f) return List(out, tag & 0x0f, depth);
    if (tag <= 0xbf) return String(out, tag & 0x1f);
    if (tag >= 0xe0) return Put(out, json(static_cast<int8_t>(tag)));
    uint64_t n = 0;
    switch (tag) {
      case 0xc0:
        return Put(out, json(nullptr));
      case 0xc2:
      case 0xc3:
        return Put(out, json(tag == 0xc3));
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return Number(1 << (tag - 0xc4), n) && Skip(n) && Put(out, json(nullptr));
      case 0xc7:
      case 0xc8:
      case 0xc9:
        return Number(1 << (tag - 0xc7), n) && n < UINT64_MAX && Skip(n + 1) && Put(out, json(nullptr));
      case 0xca:
        return Number(4, n) && Put(out, json(std::bit_cast<float>(static_cast<uint32_t>(n))));
      case 0xcb:
        return Number(8, n) && Put(out, json(std::bit_cast<double>(n)));
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xcf:
        return Number(1 << (tag - 0xcc), n) && Put(out, json(n));
      case 0xd0:
        return Number(1, n) && Put(out, json(static_cast<int8_t>(n)));
      case 0xd1:
        return Number(2, n) && Put(out, json(static_cast<int16_t>(n)));
      case 0xd2:
        return Number(4, n) && Put(out, json(static_cast<int32_t>(n)));
      case 0xd3:
        return Number(8, n) && Put(out, json(static_cast<int64_t>(n)));
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8:
        return Skip((uint64_t{1} << (tag - 0xd4)) + 1) && Put(out, json(nullptr));
      case 0xd9:
      case 0xda:
      case 0xdb:
        return Number(1 << (tag - 0xd9), n) && String(out, n);
      case 0xdc:
      case 0xdd:
        return Number(tag == 0xdc ? 2 : 4, n) && List(out, n, depth);
      case 0xde:
      case 0xdf:
        return Number(tag == 0xde ? 2 : 4, n) && Map(out, n, depth);
      default:
        return false;
    }
  }
  bool done() const { return rest_.empty(); }

 private:
  static bool Put(json& out, json value) {
    out = std::move(value);
    return true;
  }
  bool Number(int size, uint64_t& out) {
    if (rest_.size() < static_cast<size_t>(size)) return false;
    out = 0;
    for (int i = 0; i < size; ++i) out = out << 8 | static_cast<uint8_t>(rest_[static_cast<size_t>(i)]);
    rest_.remove_prefix(static_cast<size_t>(size));
    return true;
  }
  bool Skip(uint64_t size) {
    if (rest_.size() < size) return false;
    rest_.remove_prefix(size);
    return true;
  }
  bool String(json& out, uint64_t size) {
    if (rest_.size() < size) return false;
    out = std::string(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return true;
  }
  // Each element takes a byte at least, so a claimed size costs nothing.
  bool List(json& out, uint64_t size, int depth) {
    if (rest_.size() < size) return false;
    out = json::array();
    for (uint64_t i = 0; i < size; ++i) {
      if (!Value(out.emplace_back(), depth + 1)) return false;
    }
    return true;
  }
  bool Map(json& out, uint64_t size, int depth) {
    if (rest_.size() < size) return false;
    out = json::object();
    for (uint64_t i = 0; i < size; ++i) {
      json key;
      if (!Value(key, depth + 1)) return false;
      if (!Value(out[key.is_string() ? key.get<std::string>() : JsonText(key)], depth + 1)) return false;
    }
    return true;
  }

  std::string_view rest_;
};

}  // namespace

std::optional<json> ParseMsgPack(std::string_view bytes) {
  MsgPackReader reader(bytes);
  json out;
  if (!reader.Value(out, 0) || !reader.done()) return std::nullopt;
  return out;
}

}  // namespace wavetank::importing
