#include "serve/pods/websocket.h"

#include <openssl/sha.h>

#include <cstdint>

#include "absl/strings/escaping.h"

namespace wavetank::serve {
namespace {

constexpr size_t kMostMessage = 1 << 20;
constexpr uint8_t kContinuation = 0, kText = 1, kBinary = 2, kCloseFrame = 8, kPingFrame = 9, kPongFrame = 10;

}  // namespace

std::string WebSocketAccept(std::string_view key) {
  const std::string text = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  unsigned char digest[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return absl::Base64Escape({reinterpret_cast<const char*>(digest), sizeof digest});
}

bool WebSocket::Take(std::string_view bytes) {
  in_ += bytes;
  while (in_.size() >= 2) {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(in_[i]); };
    const uint8_t opcode = byte(0) & 15;
    const bool last = (byte(0) & 128) != 0;
    // A client masks what it sends.
    if ((byte(1) & 128) == 0) return false;
    size_t head = 2;
    uint64_t size = byte(1) & 127;
    if (size >= 126) {
      const size_t more = size == 126 ? 2 : 8;
      if (in_.size() < 2 + more) return true;
      size = 0;
      for (size_t i = 0; i < more; ++i) size = size << 8 | byte(2 + i);
      head += more;
    }
    if (size > kMostMessage || message_.size() + size > kMostMessage) return false;
    if (in_.size() < head + 4 + size) return true;
    std::string payload = in_.substr(head + 4, size);
    for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(payload[i] ^ in_[head + i % 4]);
    in_.erase(0, head + 4 + size);
    if (opcode == kCloseFrame) {
      events_.on_close();
      return true;
    }
    if (opcode == kPingFrame) Frame(kPongFrame, payload);
    if (opcode != kContinuation && opcode != kText && opcode != kBinary) continue;
    message_ += payload;
    if (!last) continue;
    const std::string message = std::move(message_);
    message_.clear();
    events_.on_message(message);
  }
  return true;
}

void WebSocket::Frame(uint8_t opcode, std::string_view payload) {
  std::string out(1, static_cast<char>(128 | opcode));
  if (payload.size() < 126) {
    out += static_cast<char>(payload.size());
  } else {
    const size_t more = payload.size() < 65536 ? 2 : 8;
    out += static_cast<char>(more == 2 ? 126 : 127);
    for (size_t i = more; i-- > 0;) out += static_cast<char>(static_cast<uint64_t>(payload.size()) >> (8 * i));
  }
  out += payload;
  events_.send(std::move(out));
}

void WebSocket::Send(std::string_view message) { Frame(kBinary, message); }
void WebSocket::Close() { Frame(kCloseFrame, std::string("\x03\xe8", 2)); }  // 1000: done

}  // namespace wavetank::serve
