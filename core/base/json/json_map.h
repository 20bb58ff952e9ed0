// What holds the members of JSON objects: std::map's order and interface, as far as the JSON library asks for them, in
// half of its memory (docs/performance.md). nlohmann::json has it by cmake/overlay/nlohmann/json_fwd.hpp.
//
// A world is mostly JSON objects of few members whose names recur a million times. So a name is kept once for all, a
// member is its name's address and its value, and an object is a sorted list of its members' addresses. Members and
// iterators stay good until their member is erased, as std::map's do.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace wavetank {

// The one copy of a name that lives as long as the process. Null: it is longer than others are, or there are many by
// now (names come from outside, too), and who asks keeps a copy. Any thread may ask. O(length).
const std::string* SharedJsonName(std::string_view name);

// A pair of a name and a value.
template <class Value>
class JsonMember {
  const std::string* shared_;  // null: `first` is this member's own

 public:
  const std::string& first;
  Value second;

  template <class V>
  JsonMember(std::string_view name, V&& value)
      : shared_(SharedJsonName(name)),
        first(shared_ != nullptr ? *shared_ : *new std::string(name)),
        second(std::forward<V>(value)) {}
  JsonMember(const JsonMember& other)
      : shared_(other.shared_),
        first(shared_ != nullptr ? *shared_ : *new std::string(other.first)),
        second(other.second) {}
  JsonMember& operator=(const JsonMember&) = delete;
  ~JsonMember() {
    if (shared_ == nullptr) delete &first;
  }
  // As a pair is one of another kind's, as of nlohmann::ordered_json.
  template <class Other>
  operator std::pair<const std::string, Other>() const {  // NOLINT(google-explicit-constructor)
    return {first, second};
  }

  friend bool operator==(const JsonMember& a, const JsonMember& b) {
    return (&a.first == &b.first || a.first == b.first) && a.second == b.second;
  }
  friend std::partial_ordering operator<=>(const JsonMember& a, const JsonMember& b) {
    const std::strong_ordering order = a.first <=> b.first;
    if (order != 0) return order;
    return a.second <=> b.second;
  }
};

// For structured bindings.
template <size_t kIndex, class Value>
const auto& get(const JsonMember<Value>& member) {
  if constexpr (kIndex == 0) {
    return member.first;
  } else {
    return member.second;
  }
}
template <size_t kIndex, class Value>
auto& get(JsonMember<Value>& member) {
  if constexpr (kIndex == 0) {
    return member.first;
  } else {
    return member.second;
  }
}

// The library's ObjectType; it gives an order of names and an allocator, both of which are std's own.
template <class Key, class Value, class Less, class Allocator>
class JsonMap {
 public:
  using key_type = Key;
  using mapped_type = Value;
  using value_type = JsonMember<Value>;
  using key_compare = std::less<>;  // transparent: the library then looks names up as they are given
  using size_type = size_t;
  using difference_type = ptrdiff_t;
  using reference = value_type&;
  using const_reference = const value_type&;

  template <bool kConst>
  class Iterator {
   public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = JsonMember<Value>;
    using difference_type = ptrdiff_t;
    using pointer = std::conditional_t<kConst, const value_type*, value_type*>;
    using reference = std::conditional_t<kConst, const value_type&, value_type&>;

    Iterator() = default;
    operator Iterator<true>() const {  // NOLINT(google-explicit-constructor): as std's
      Iterator<true> out;
      out.map_ = map_;
      out.member_ = member_;
      out.index_ = index_;
      return out;
    }
    reference operator*() const { return *member_; }
    pointer operator->() const { return member_; }
    Iterator& operator++() { return *this = Iterator(map_, Index() + 1); }
    Iterator& operator--() { return *this = Iterator(map_, Index() - 1); }
    Iterator operator++(int) { return std::exchange(*this, Iterator(map_, Index() + 1)); }
    Iterator operator--(int) { return std::exchange(*this, Iterator(map_, Index() - 1)); }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.map_ == b.map_ && a.member_ == b.member_; }

   private:
    friend class JsonMap;
    template <bool>
    friend class Iterator;
    Iterator(const JsonMap* map, size_t index)
        : map_(map), member_(index < map->size_ ? map->members_[index] : nullptr), index_(index) {}

    // Others may have come or gone before it.
    size_t Index() const {
      if (member_ == nullptr) return map_->size_;
      if (index_ < map_->size_ && map_->members_[index_] == member_) return index_;
      return map_->LowerBound(member_->first);
    }

    const JsonMap* map_ = nullptr;
    value_type* member_ = nullptr;  // null: the end
    size_t index_ = 0;              // where it was
  };
  using iterator = Iterator<false>;
  using const_iterator = Iterator<true>;

  JsonMap() = default;
  JsonMap(const JsonMap& other) {
    Grow(other.size_);
    while (size_ < other.size_) Append(std::make_unique<value_type>(*other.members_[size_]));
  }
  JsonMap(JsonMap&& other) noexcept { swap(other); }
  template <class Input>
  JsonMap(Input first, Input last) {
    insert(first, last);
  }
  JsonMap(std::initializer_list<value_type> members) { insert(members.begin(), members.end()); }
  JsonMap& operator=(JsonMap other) noexcept {
    swap(other);
    return *this;
  }
  ~JsonMap() { clear(); }

  void swap(JsonMap& other) noexcept {
    members_.swap(other.members_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  iterator begin() { return iterator(this, 0); }
  iterator end() { return iterator(this, size_); }
  const_iterator begin() const { return const_iterator(this, 0); }
  const_iterator end() const { return const_iterator(this, size_); }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }
  bool empty() const { return size_ == 0; }
  size_type size() const { return size_; }
  size_type max_size() const { return UINT32_MAX; }
  void reserve(size_type size) { Grow(static_cast<uint32_t>(size)); }
  void clear() {
    while (size_ > 0) delete members_[--size_];
  }

  // O(log n) comparisons of names; of few members one look at each.
  iterator find(std::string_view name) { return iterator(this, Find(name)); }
  const_iterator find(std::string_view name) const { return const_iterator(this, Find(name)); }
  size_type count(std::string_view name) const { return Find(name) < size_ ? 1 : 0; }
  bool contains(std::string_view name) const { return Find(name) < size_; }

  // O(n) moves of addresses, unless it is the last by name.
  template <class V>
  std::pair<iterator, bool> emplace(std::string_view name, V&& value) {
    const size_t at = LowerBound(name);
    if (at < size_ && members_[at]->first == name) return {iterator(this, at), false};
    Append(std::make_unique<value_type>(name, std::forward<V>(value)));
    std::rotate(members_.get() + at, members_.get() + size_ - 1, members_.get() + size_);
    return {iterator(this, at), true};
  }
  template <class V>
  iterator emplace_hint(const_iterator hint, std::string_view name, V&& value) {
    if (hint != end() || (size_ > 0 && !(members_[size_ - 1]->first < name)))
      return emplace(name, std::forward<V>(value)).first;
    Append(std::make_unique<value_type>(name, std::forward<V>(value)));
    return iterator(this, size_ - 1);
  }
  std::pair<iterator, bool> insert(const value_type& member) { return emplace(member.first, member.second); }
  template <class Input>
  void insert(Input first, Input last) {
    for (; first != last; ++first) emplace_hint(end(), first->first, first->second);
  }
  mapped_type& operator[](std::string_view name) { return emplace(name, nullptr).first->second; }

  iterator erase(const_iterator at) { return Erase(at.Index(), at.Index() + 1); }
  iterator erase(const_iterator first, const_iterator last) { return Erase(first.Index(), last.Index()); }
  size_type erase(std::string_view name) {
    const size_t at = Find(name);
    if (at == size_) return 0;
    Erase(at, at + 1);
    return 1;
  }

  friend bool operator==(const JsonMap& a, const JsonMap& b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }
  friend std::partial_ordering operator<=>(const JsonMap& a, const JsonMap& b) {
    return std::lexicographical_compare_three_way(
        a.begin(), a.end(), b.begin(), b.end(),
        [](const value_type& one, const value_type& other) -> std::partial_ordering { return one <=> other; });
  }

 private:
  static constexpr uint32_t kFew = 8;

  // Where it is, or size_.
  size_t Find(std::string_view name) const {
    if (size_ > kFew) {
      const size_t at = LowerBound(name);
      return at < size_ && members_[at]->first == name ? at : size_;
    }
    size_t at = 0;
    while (at < size_ && members_[at]->first != name) ++at;
    return at;
  }
  size_t LowerBound(std::string_view name) const {
    value_type** const begin = members_.get();
    return static_cast<size_t>(
        std::lower_bound(begin, begin + size_, name,
                         [](const value_type* member, std::string_view of) { return member->first < of; }) -
        begin);
  }
  iterator Erase(size_t begin, size_t end) {
    std::for_each(members_.get() + begin, members_.get() + end, std::default_delete<value_type>());
    std::copy(members_.get() + end, members_.get() + size_, members_.get() + begin);
    size_ -= static_cast<uint32_t>(end - begin);
    return iterator(this, begin);
  }
  void Append(std::unique_ptr<value_type> member) {
    if (size_ == capacity_) Grow(capacity_ == 0 ? 2 : 2 * capacity_);
    members_[size_++] = member.release();
  }
  void Grow(uint32_t capacity) {
    if (capacity <= capacity_) return;
    std::unique_ptr<value_type*[]> more(new value_type*[capacity]);
    std::copy(members_.get(), members_.get() + size_, more.get());
    members_ = std::move(more);
    capacity_ = capacity;
  }

  std::unique_ptr<value_type*[]> members_;  // by name; each is owned
  uint32_t size_ = 0, capacity_ = 0;
};

}  // namespace wavetank

template <class Value>
struct std::tuple_size<wavetank::JsonMember<Value>> : std::integral_constant<size_t, 2> {};
template <class Value>
struct std::tuple_element<0, wavetank::JsonMember<Value>> {
  using type = const std::string;
};
template <class Value>
struct std::tuple_element<1, wavetank::JsonMember<Value>> {
  using type = Value;
};
