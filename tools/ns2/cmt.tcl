# One SCTP association with ns-2.35's CMT agents over any number of disjoint paths. settle.py calls it.
#
#   ns cmt.tcl paths {10Mb 45ms 0.02 1Mb forward 10Mb 45ms 0.1 0 forward} seed 3 trace out.tr
#
# `paths` has five words for each path: rate and one-way delay of its bottleneck, loss of the direction of the data (before the
# queue), rate of the cross traffic (0 for none) and its direction (`forward` along the data, `reverse` against it). Cross
# traffic is 500 B packets whose gaps vary by half of their mean, or eight Pareto sources if its rate is written `pareto:SHARE`.
# `access` is the rate of the links between hosts and bottlenecks and `burst` how many packets the first of them queues: with
# large windows both have to be larger, or packets are lost there. At the end it prints the counters of the sending agent, and with
# `count 1` how many packets came to the receiver over each path.

array set given {
    paths {} seed 1 duration 200 queue 50 rbuf 65536 pf 0 trigger 3 unordered 0 primary 0 trace ""
    access 100Mb burst 50 ssthresh 65536 count 0
}
array set given $argv

Trace set show_sctphdr_ 1
set ns [new Simulator]
ns-random $given(seed)
set trace ""
if {$given(trace) ne ""} {
    set trace [open $given(trace) w]
}

proc lossy {from to rate stream} {
    global ns given
    set random [new RNG]
    $random seed [expr {1000 * $given(seed) + $stream}]
    set drawn [new RandomVariable/Uniform]
    $drawn use-rng $random
    set model [new ErrorModel]
    $model unit pkt
    $model set rate_ $rate
    $model ranvar $drawn
    $model drop-target [new Agent/Null]
    $ns lossmodel $model $from $to
}

proc source {from to kind size} {
    global ns
    set udp [new Agent/UDP]
    set sink [new Agent/Null]
    $ns attach-agent $from $udp
    $ns attach-agent $to $sink
    $ns connect $udp $sink
    set made [new Application/Traffic/$kind]
    $made attach-agent $udp
    $made set packetSize_ $size
    $ns at 0.1 "$made start"
    return $made
}

proc background {from to rate capacity} {
    if {![string match pareto:* $rate]} {
        set made [source $from $to CBR 500]
        $made set rate_ $rate
        $made set random_ 1
        return
    }
    # Each of eight is on for half of the time.
    set share [string range $rate 7 end]
    foreach size {44 44 44 44 576 576 1500 1500} {
        set made [source $from $to Pareto $size]
        $made set burst_time_ 500ms
        $made set idle_time_ 500ms
        $made set shape_ 1.5
        $made set rate_ [expr {2.0 * $share * $capacity / 8}]
    }
}

proc bits_per_second {rate} {
    if {[regexp {^([0-9.]+)([KM])b$} $rate - number unit]} {
        return [expr {$number * ($unit eq "M" ? 1e6 : 1e3)}]
    }
    return $rate
}

proc agent {node} {
    global ns given
    set made [new Agent/SCTP/CMT]
    $ns multihome-attach-agent $node $made
    $made set fid_ 0
    $made set debugMask_ 0
    $made set debugFileIndex_ 0
    $made set mtu_ 1500
    $made set dataChunkSize_ 1468
    $made set numOutStreams_ 1
    $made set initialRwnd_ $given(rbuf)
    $made set initialSsthresh_ $given(ssthresh)
    $made set unordered_ $given(unordered)
    $made set useCmtPF_ $given(pf)
    $made set eCmtRtxPolicy_ 4
    $made set fastRtxTrigger_ $given(trigger)
    return $made
}

set sender [$ns node]
set receiver [$ns node]
set far {}
set counted {}
set number 0
foreach {rate delay loss cross direction} $given(paths) {
    foreach name {near left right away} { set $name [$ns node] }
    $ns multihome-add-interface $sender $near
    $ns multihome-add-interface $receiver $away
    lappend far $away
    $ns duplex-link $near $left $given(access) 1us DropTail
    $ns duplex-link $left $right $rate $delay DropTail
    $ns duplex-link $right $away $given(access) 1us DropTail
    if {$trace ne ""} {
        # What leaves the sender, and what arrives.
        $ns trace-queue $near $left $trace
        $ns trace-queue $right $away $trace
    }
    if {$given(count)} { lappend counted [$ns monitor-queue $right $away ""] }
    $ns queue-limit $near $left $given(burst)
    $ns queue-limit $left $right $given(queue)
    $ns queue-limit $right $left $given(queue)
    if {$loss > 0} { lossy $left $right $loss [incr number] }
    if {$cross ne "0"} {
        set capacity [bits_per_second $rate]
        if {$direction eq "reverse"} { background $right $left $cross $capacity } else { background $left $right $cross $capacity }
    }
    puts "interface=[$away id]"
}

set from [agent $sender]
set to [agent $receiver]
$ns connect $from $to
$from set-primary-destination [lindex $far $given(primary)]
set ftp [new Application/FTP]
$ftp attach-agent $from
$ns at 0.5 "$ftp start"
$ns at $given(duration) finish

proc finish {} {
    global ns trace from counted
    if {$trace ne ""} {
        $ns flush-trace
        close $trace
    }
    puts "timeouts=[$from set timeoutCount_]"
    puts "fast_retransmits=[$from set frCount_]"
    foreach monitor $counted { puts "packets=[$monitor set pdepartures_]" }
    exit 0
}
$ns run
