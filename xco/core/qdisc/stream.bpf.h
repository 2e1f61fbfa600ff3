/* TCP segments that begin or end a stream. */
#ifndef XCO_QDISC_STREAM_BPF_H
#define XCO_QDISC_STREAM_BPF_H

#define IP_TCP 6
#define IP6_HEADER 40
#define TCP_FLAGS 13 /* offset in TCP's header */
#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_ACK 0x10

/* Returns the offset of an IP packet's TCP header; 0: it has none, or none that is found at once
 * (fragments, IPv6 extension headers). */
static __always_inline __u32 tcp_of(struct __sk_buff *skb, const struct packet *packet) {
    struct {
        __u8 length, service, rest[4], fragment[2], ttl, protocol;
    } ip;
    if (bpf_skb_load_bytes(skb, packet->offset, &ip, sizeof ip) < 0) {
        return 0;
    }
    if (packet->protocol == ETH_P_IPV6) {
        return ip.fragment[0] == IP_TCP ? packet->offset + IP6_HEADER : 0; /* its next header */
    }
    int whole = !(ip.fragment[0] & 0x3f) && !ip.fragment[1];
    int tcp = packet->protocol == ETH_P_IP && ip.protocol == IP_TCP;
    return tcp && whole ? packet->offset + (ip.length & 0xf) * 4 : 0;
}

/* Returns a packet's TCP flags; 0: it has none, or they are not found. */
static __always_inline __u8 tcp_flags(struct __sk_buff *skb, const struct packet *packet) {
    __u32 tcp = tcp_of(skb, packet);
    __u8 flags = 0;
    return tcp && bpf_skb_load_bytes(skb, tcp + TCP_FLAGS, &flags, 1) == 0 ? flags : 0;
}

/* Whether a segment asks for a connection, whatever else it has: data, ECN flags. */
static __always_inline int begins_stream(__u8 flags) {
    return (flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
}

#endif
